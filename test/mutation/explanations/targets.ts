// The mutants that survive in the routes and connections of the proxy, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const targets: readonly Explanation[] = [
  {
    file: 'src/token-handler/targets/connection-lease.ts',
    text: 'this.#lease?.dispatcher.dispatch(request, handler);',
    changes: [['this.#lease?.dispatcher', 'this.#lease.dispatcher']],
    kind: 'equivalent',
    why: 'a request is dispatched only after it has a lease; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/targets/connection-lease.ts',
    text: 'if (this.#isClosed) this.#lease?.release();',
    changes: [['this.#lease?.release', 'this.#lease.release']],
    kind: 'equivalent',
    why: 'undici reports the end of a request only after it was dispatched with a lease; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: 'sweep.unref();',
    changes: [['sweep.unref();', ';']],
    kind: 'second barrier',
    why: '`close` ends the timer; without `close`, the timer must not keep the process alive.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: 'if (owned.delete(dispatcher)) dispatcher.destroy().catch(() => undefined);',
    changes: [['owned.delete(dispatcher)', 'true']],
    kind: 'equivalent',
    why: 'destroying a connection a second time does nothing.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: "throw this.#refusal('pool', 'All connections to this upstream are in use.');",
    changes: [["'All connections to this upstream are in use.'", '""']],
    kind: 'text for people',
    why: 'the detail of a problem.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: "throw this.#refusal('process', 'This person, tenant or service has too many requests to upstreams.');",
    changes: [["'This person, tenant or service has too many requests to upstreams.'", '""']],
    kind: 'text for people',
    why: 'the detail of a problem.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: 'shared.clear();',
    changes: [['shared.clear();', ';']],
    kind: 'second barrier',
    why: 'the connections are destroyed, so that they refuse further requests.',
  },
  {
    file: 'src/token-handler/targets/connections.ts',
    text: 'owned.clear();',
    changes: [['owned.clear();', ';']],
    kind: 'second barrier',
    why: 'the connections are destroyed, so that they refuse further requests.',
  },
  {
    file: 'src/service/http/cross-origin.ts',
    text: 'else if (origin !== undefined && origins.includes(origin))',
    changes: [['origin !== undefined', 'true']],
    kind: 'equivalent',
    why: 'a list of origins never contains an absent one; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/targets/handler.ts',
    text: "export function targetAddressOf({ url = '' }: Pick<IncomingMessage, 'url'>): TargetAddress {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'the request line always has a path; an empty one and this text are both refused.',
  },
  {
    file: 'src/token-handler/targets/handler.ts',
    text: 'if (length !== undefined && length.length > 15 && !Number.isSafeInteger(Number(length)))',
    changes: [
      ['length.length > 15', 'true'],
      ['length.length > 15', 'length.length >= 15'],
    ],
    kind: 'equivalent',
    why: 'shorter numbers are always safe integers; the comparison of the length is a shortcut.',
  },
  {
    file: 'src/token-handler/targets/tunnel.ts',
    text: `const lines = [\`HTTP/1.1 \${status} \${STATUS_CODES[status] ?? ''}\`, 'Connection: Upgrade', 'Upgrade: websocket'];`,
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'the only status is 101, which has a name; the default satisfies the type checker.',
  },
  {
    file: 'src/token-handler/targets/tunnel.ts',
    text: 'if (head.length > 0) upstream.write(head);',
    changes: [
      ['head.length > 0', 'true'],
      ['head.length > 0', 'head.length >= 0'],
    ],
    kind: 'equivalent',
    why: 'writing no bytes has no effect.',
  },
  {
    file: 'src/token-handler/targets/tunnel.ts',
    text: "client.on('error', () => undefined);",
    changes: [["'error'", '""']],
    kind: 'second barrier',
    why: 'the connection of an upgrade has a listener for errors already (upgrades.ts).',
  },
];
