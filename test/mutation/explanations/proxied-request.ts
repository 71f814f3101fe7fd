// The mutants that survive in the proxied request, and why they do no harm.
import type { Explanation } from './explanation.ts';

const file = 'src/token-handler/targets/proxied-request.ts';

const guardOfTheEnd =
  'the end of a request removes the listeners and timers that call this code; the check is for a call that is already on its way.';
const endsOnClose = 'the response closes a moment later, and its listener then does the same.';

export const proxiedRequest: readonly Explanation[] = [
  {
    file,
    text: 'if (this.#isOver) return;',
    changes: [['this.#isOver', 'false']],
    kind: 'second barrier',
    why: guardOfTheEnd,
  },
  {
    file,
    text: 'if (this.#outgoing.isUpgrade) this.#stopNotice = noticeLeaving(this.#request);',
    changes: [['this.#outgoing.isUpgrade', 'true']],
    kind: 'equivalent',
    why: '`noticeLeaving` does nothing for a request that is not an upgrade.',
  },
  {
    file,
    text: 'onRequestSent(): void {',
    changes: [['{ this.#timer.refresh(); }', '{}']],
    kind: 'second barrier',
    why: 'matters only if the connection to the upstream takes long: the last piece of a body also restarts the timer.',
  },
  {
    file,
    text: 'this.#timer.refresh();',
    changes: [['this.#timer.refresh();', ';']],
    kind: 'second barrier',
    why: 'matters only if the connection to the upstream takes long: the last piece of a body also restarts the timer.',
  },
  {
    file,
    text: 'this.#hasBegun = true;',
    changes: [['true', 'false']],
    kind: 'performance only',
    why: 'flushing the head does nothing after the body has begun.',
  },
  {
    file,
    text: 'if (!download.write(chunk, controller)) this.#watch.download(download);',
    changes: [['!download.write(chunk, controller)', 'download.write(chunk, controller)']],
    kind: 'performance only',
    why: 'the rate of a body is then watched from its first piece, not from the first one for which the client is too slow.',
  },
  {
    file,
    text: 'if (download.isOpen) this.#watch.session();',
    changes: [['download.isOpen', 'true']],
    kind: 'performance only',
    why: 'also watches the session of a request that ends at once.',
  },
  {
    file,
    text: 'if (!response.writableEnded) {',
    changes: [['!response.writableEnded', 'true']],
    kind: 'equivalent',
    why: 'ending a response twice does nothing, and a response with a Content-Length has no trailers.',
  },
  {
    file,
    text: 'if (response.writableLength > 0) this.#deliver();',
    changes: [
      ['response.writableLength > 0', 'true'],
      ['response.writableLength > 0', 'response.writableLength >= 0'],
    ],
    kind: 'performance only',
    why: 'the request then ends with the event `finish`, which follows in the next tick if nothing has to be delivered.',
  },
  {
    file,
    text: 'if (this.#download) this.#watch.download(this.#download);',
    changes: [['this.#download', 'true']],
    kind: 'equivalent',
    why: 'bytes that wait for the client belong to a download; the check satisfies the type checker.',
  },
  {
    file,
    text: 'this.#stopNotice?.();',
    changes: [['this.#stopNotice?.()', 'this.#stopNotice()']],
    kind: 'equivalent',
    why: 'undici upgrades a connection only for a request that is an upgrade; the check satisfies the type checker.',
  },
  {
    file,
    text: "upstream.on('error', ignore);",
    changes: [["'error'", '""']],
    kind: 'second barrier',
    why: '`openTunnel` adds a listener too; this one is for a request that is already over.',
  },
  {
    file,
    text: 'if (this.#isOver) return void upstream.destroy();',
    changes: [['this.#isOver', 'false']],
    kind: 'second barrier',
    why: guardOfTheEnd,
  },
  {
    file,
    text: 'this.#leave();',
    changes: [['this.#leave();', ';']],
    kind: 'equivalent',
    why: endsOnClose,
  },
  {
    file,
    text: 'if (!this.#response.headersSent) this.#response.shouldKeepAlive = false;',
    changes: [['!this.#response.headersSent', 'true']],
    kind: 'equivalent',
    why: 'after the head was sent, the connection is reset.',
  },
  {
    file,
    text: 'if (this.#body instanceof RequestBody && this.#body.isWaiting) return false;',
    changes: [['false', 'true']],
    kind: 'equivalent',
    why: 'the next piece of the body starts the timer again.',
  },
  {
    file,
    text: 'if (this.#body instanceof RequestBody) this.#body.destroy();',
    changes: [
      ['this.#body instanceof RequestBody', 'false'],
      ['this.#body.destroy();', ';'],
    ],
    kind: 'second barrier',
    why: 'undici destroys the body of a request that it aborts.',
  },
  {
    file,
    text: "this.#response.off('close', this.#onClientClose);",
    changes: [["'close'", '""']],
    kind: 'second barrier',
    why: 'the listener does nothing when the request is over.',
  },
  {
    file: file,
    text: "this.#download = new Download(response, passedOn['content-length']);",
    changes: [["'content-length'", '""']],
    kind: 'performance only',
    why: 'the session is then watched until the upstream has ended a response whose length is known.',
  },
  {
    file: file,
    text: 'this.#watch.session();',
    changes: [['this.#watch.session();', ';']],
    kind: 'second barrier',
    why: 'the session of a response that the client reads slowly is watched since an earlier piece.',
  },
  {
    file: file,
    text: 'if (this.#download) this.#watch.download(this.#download);',
    changes: [
      ['this.#download', 'true'],
      ['this.#download', 'false'],
      ['this.#watch.download(this.#download);', ';'],
    ],
    kind: 'second barrier',
    why: 'the rate of a download is watched since the first piece for which the client was too slow.',
  },
  {
    file: file,
    text: "this.#response.once('finish', () => this.#finish());",
    changes: [
      ["'finish'", '""'],
      ['() => this.#finish()', '() => undefined'],
    ],
    kind: 'equivalent',
    why: 'the response closes a moment later, and its listener then does the same.',
  },
  {
    file: file,
    text: 'keepOpen(this.#request, this.#response);',
    changes: [['keepOpen(this.#request, this.#response);', ';']],
    kind: 'second barrier',
    why: '`serveUpgrades` removes the timeout of the connection as well.',
  },
  {
    file: file,
    text: 'if (this.#response.headersSent || this.#response.statusCode === 101) {',
    changes: [
      ['this.#response.headersSent || this.#response.statusCode === 101', 'false'],
      [
        'this.#response.headersSent || this.#response.statusCode === 101',
        'this.#response.headersSent && this.#response.statusCode === 101',
      ],
      ['this.#response.statusCode === 101', 'false'],
    ],
    kind: 'second barrier',
    why: 'the connection is closed in either case: a problem cannot be sent any more.',
  },
  {
    file: file,
    text: '#isEvents = false;',
    changes: [['false', 'true']],
    kind: 'equivalent',
    why: 'it is read only after the head of a response, which sets it.',
  },
  {
    file: file,
    text: "this.#response.on('close', this.#onClientClose).on('error', ignore);",
    changes: [["'error'", '""']],
    kind: 'second barrier',
    why: 'the response is never destroyed with an error; the listener is for errors of a later version of Node.',
  },
  {
    file: file,
    text: 'else this.#finish();',
    changes: [['this.#finish();', ';']],
    kind: 'performance only',
    why: 'the request then ends with the event `close`, which follows at once if nothing has to be delivered.',
  },
  {
    file: file,
    text: 'this.#lease.suspect();',
    changes: [['this.#lease.suspect();', ';']],
    kind: 'killed elsewhere',
    why: '`test/faults/dropped-connections.test.ts` tests connections that the network drops silently.',
  },
  {
    file: 'src/token-handler/targets/proxied-request.ts',
    text: "if (this.#isOver) controller.abort(new Error('the request is over'));",
    changes: [
      ["controller.abort(new Error('the request is over'));", ';'],
      ['this.#isOver', 'false'],
    ],
    kind: 'performance only',
    why: 'undici does not send a request whose body is destroyed; the upstream then serves a request without a body for nobody.',
  },
];
