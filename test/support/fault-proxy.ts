// A proxy between a real client and a real HTTP service. It breaks the calls that a test chooses, each in one way, and
// forwards all other calls unchanged. It works for any API.
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer } from './loopback-server.ts';

/**
 * How the proxy breaks a call:
 * - `refused`: nothing listens any more, until `heal`
 * - `reset`: the connection breaks before the response; the service never received the call
 * - `hang`: no response; the service never received the call
 * - `half a response`: the service processed the call, but its response stops halfway
 * - `late response`: the response arrives a second late
 * - `lost response`: the service processed the call, but the connection breaks before its response
 * - `lost in silence`: the service processed the call, but the client gets no response
 * - `lost as 502`, `lost as 504`: the service processed the call, but the client gets this error from a gateway
 * - a number: a response with that status and a platform error as its body; the service never received the call
 */
export type Fault =
  | ('refused' | 'reset' | 'hang' | 'half a response' | 'late response' | 'lost response')
  | ('lost in silence' | 'lost as 502' | 'lost as 504')
  | number;

export interface FaultProxy {
  url: string;
  /** Calls since the last `break` or `heal`, including broken ones, as `PATCH /path?query`. */
  calls: string[];
  /**
   * Restarts the count of calls. Breaks `times` calls, beginning with call number `at`, where 1 is the next call. By
   * default, breaks all calls from there on.
   */
  break(fault: Fault, options: { at: number; times?: number }): Promise<void>;
  /** Forwards all calls again, and restarts the count. */
  heal(): Promise<void>;
  close(): Promise<void>;
}

interface Plan {
  fault: Fault;
  from: number;
  to: number;
}

export interface ForwardedAnswer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: Buffer;
}

/** Returns the status with which to respond instead of forwarding a call; undefined to forward the call. */
export type ScriptedAnswer = (call: IncomingMessage) => Promise<number | undefined>;

export interface FaultProxyOptions {
  scripted?: ScriptedAnswer;
  /**
   * True for paths whose calls are forwarded without being counted or broken, because they occur at unpredictable
   * times.
   */
  uncounted?: (path: string) => boolean;
}

export async function startFaultProxy(
  target: string,
  { uncounted = () => false, ...options }: FaultProxyOptions = {},
): Promise<FaultProxy> {
  const scripted: ScriptedAnswer = options.scripted ?? (async () => undefined);
  const calls: string[] = [];
  let plan: Plan | undefined;
  const server = createHttpServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const port = await listenOnLowPort(server);

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const number = uncounted(incoming.url ?? '') ? 0 : calls.push(`${incoming.method} ${incoming.url}`);
    const body = await buffer(incoming);
    const fault = plan && number >= plan.from && number <= plan.to ? plan.fault : undefined;
    // Closes this connection, so that the next call has to connect and is refused.
    const lastBeforeRefusal = plan?.fault === 'refused' && number === plan.from - 1;
    if (lastBeforeRefusal) stopListening();
    await answer({ incoming, response, body, fault, close: lastBeforeRefusal });
  }

  async function answer(call: Call): Promise<void> {
    const { response, fault } = call;
    if (fault === 'hang') return;
    if (fault === 'reset' || fault === 'refused') return void response.socket?.resetAndDestroy();
    if (typeof fault === 'number') {
      const headers = { 'content-type': 'application/json' };
      response.writeHead(fault, headers).end(JSON.stringify({ errorMessage: `broken with ${fault}` }));
      return;
    }
    const status = await scripted(call.incoming);
    if (status !== undefined) return void response.writeHead(status).end();
    const passed = await forward(target, call);
    if (fault === 'late response') await sleep(1_000);
    if (fault === 'lost response') return void response.socket?.resetAndDestroy();
    if (fault === 'lost in silence') return;
    if (fault === 'lost as 502' || fault === 'lost as 504')
      return void response.writeHead(Number(fault.slice(-3))).end('<html>bad gateway</html>');
    const headers = { ...passed.headers, ...(call.close && { connection: 'close' }) };
    response.writeHead(passed.status, { ...headers, 'content-length': passed.body.length });
    if (fault === undefined || fault === 'late response') return void response.end(passed.body);
    response.write(passed.body.subarray(0, Math.floor(passed.body.length / 2)), () => {
      response.socket?.resetAndDestroy();
    });
  }

  function stopListening(): void {
    if (server.listening) server.close();
    server.closeIdleConnections();
  }

  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    async break(fault, { at, times = Number.POSITIVE_INFINITY }) {
      calls.length = 0;
      plan = { fault, from: at, to: at + times - 1 };
      if (fault === 'refused' && at === 1) {
        stopListening();
        server.closeAllConnections();
      }
    },
    async heal() {
      plan = undefined;
      server.closeAllConnections();
      calls.length = 0;
      if (!server.listening) await listenAt(server, port);
    },
    close: () => closeServer(server),
  };
}

interface Call {
  incoming: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
  fault: Fault | undefined;
  close: boolean;
}

/** Sends a request with its whole body to `target`, and returns the whole response. */
export function forward(target: string, { incoming, body }: Pick<Call, 'incoming' | 'body'>): Promise<ForwardedAnswer> {
  return new Promise((resolve, reject) => {
    const { host: _host, connection: _connection, 'transfer-encoding': _coding, ...headers } = incoming.headers;
    const outgoing = request(`${target}${incoming.url}`, {
      method: incoming.method,
      headers: { ...headers, 'content-length': body.length },
    });
    outgoing.once('error', reject);
    outgoing.once('response', (answer) => {
      const { 'transfer-encoding': _chunked, connection: _keep, 'keep-alive': _alive, ...answered } = answer.headers;
      buffer(answer).then(
        (text) => resolve({ status: answer.statusCode ?? 502, headers: answered, body: text }),
        reject,
      );
    });
    outgoing.end(body);
  });
}
