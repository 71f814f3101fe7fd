// The mutants that survive in the proxied request, and why they do no harm.
import type { Explanation } from './explanation.ts';

const file = 'src/token-handler/targets/proxied-request.ts';

export const proxiedRequest: readonly Explanation[] = [
  {
    file,
    text: 'if (this.#isClosed) return;',
    changes: [['this.#isClosed', 'false']],
    kind: 'second barrier',
    why: 'the end of a request removes the listeners and timers that call this code; the check is for a call that is already on its way.',
  },
  {
    file,
    text: 'if (this.#outgoing.isUpgrade) this.#stopWatchingClient = noticeLeaving(this.#request);',
    changes: [['this.#outgoing.isUpgrade', 'true']],
    kind: 'equivalent',
    why: '`noticeLeaving` does nothing for a request that is not an upgrade.',
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
    text: 'this.#stopWatchingClient?.();',
    changes: [['this.#stopWatchingClient?.()', 'this.#stopWatchingClient()']],
    kind: 'equivalent',
    why: 'undici upgrades a connection only for a request that is an upgrade; the check satisfies the type checker.',
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
    text: '#isEvents = false;',
    changes: [['false', 'true']],
    kind: 'equivalent',
    why: 'it is read only after the head of a response, which sets it.',
  },
];
