// A proxy in front of a real identity provider. It treats token refreshes as the test chooses, and forwards all other
// requests. It records the refresh tokens that clients present.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ForwardedAnswer, forward } from './fault-proxy.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

/**
 * How the proxy treats a refresh:
 * - a number: forwards the request after this many milliseconds
 * - `hang`: never responds; the identity provider never receives the request
 * - `reset`: the connection breaks before a response; the identity provider never receives the request
 * - `lost response`: the identity provider processes the request, but the connection breaks before its response
 * - `half a response`: the identity provider processes the request, but the connection breaks halfway through its
 *   response
 * - `status`: a response with this status. The identity provider receives the request only if `isProcessed`
 * - `edit`: the identity provider processes the request, and the client gets the edited members of its response
 */
export type RefreshFate =
  | number
  | 'hang'
  | 'reset'
  | 'lost response'
  | 'half a response'
  | DoorResponse
  | { edit: Edit };

/** Changes the members of a token response. */
export type Edit = (members: Record<string, unknown>) => Record<string, unknown> | Promise<Record<string, unknown>>;

export interface DoorResponse {
  status: number;
  /** Member `error` of the response's body. */
  error?: string;
  /** Body of the response, instead of a JSON body. */
  body?: string;
  headers?: Record<string, string>;
  isProcessed?: boolean;
}

export interface TokenDoor {
  /** URL of the proxy: `http://127.0.0.1:<port>/auth`. */
  url: string;
  /** Refresh tokens, in the order of arrival. */
  presented: string[];
  /** Paths of the requests that reused a connection, in the order of arrival. */
  reusing: string[];
  /**
   * Sets the fate of refreshes, from the next one on. A function gets the number of the refresh, and returns its fate.
   */
  set(fate: RefreshFate | ((nth: number) => RefreshFate)): void;
  /** If `isHidden` is true, requests for the provider's keys get 503. */
  hideKeys(isHidden: boolean): void;
  /** Sets a function that edits the members of the token response to each redeemed code. */
  editCodes(edit: Edit): void;
  /**
   * Sets a function that runs after each code was redeemed and before the token response is forwarded. The function
   * receives this response.
   */
  afterCodes(happens: (answer: string) => Promise<void>): void;
  close(): Promise<void>;
}

/** Starts the proxy. `accessUrl`, the address of the identity provider, must end in `/auth`. */
export async function startTokenDoor(accessUrl: string): Promise<TokenDoor> {
  const target = new URL(accessUrl).origin;
  const presented: string[] = [];
  const reusing: string[] = [];
  const used = new WeakSet<Socket>();
  let isWithoutKeys = false;
  let fate: RefreshFate | ((nth: number) => RefreshFate) = 0;
  let editCode: Edit = (members) => members;
  let afterCode: (answer: string) => Promise<void> = async () => undefined;
  const server = createHttpServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server);

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (used.has(incoming.socket)) reusing.push(incoming.url ?? '');
    used.add(incoming.socket);
    if (isWithoutKeys && incoming.url?.endsWith('/certs')) return void response.writeHead(503).end();
    const body = await buffer(incoming);
    const form = new URLSearchParams(body.toString('utf8'));
    const isRefresh = incoming.url?.endsWith('/token') && form.get('grant_type') === 'refresh_token';
    if (!isRefresh) {
      const answer = await forward(target, { incoming, body });
      if (form.get('grant_type') !== 'authorization_code') return send(response, answer);
      await afterCode(answer.body.toString('utf8'));
      return send(response, await edited(answer, editCode));
    }
    presented.push(form.get('refresh_token') ?? '');
    await meet(typeof fate === 'function' ? fate(presented.length) : fate, incoming, response, body);
  }

  async function meet(what: RefreshFate, incoming: IncomingMessage, response: ServerResponse, body: Buffer) {
    if (what === 'hang') return;
    if (what === 'reset') return void response.socket?.resetAndDestroy();
    if (typeof what === 'object' && 'status' in what) {
      if (what.isProcessed) await forward(target, { incoming, body });
      const answer = what.body ?? JSON.stringify({ error: what.error ?? 'server_error' });
      return void response.writeHead(what.status, { 'content-type': 'application/json', ...what.headers }).end(answer);
    }
    if (typeof what === 'number') await delay(what);
    const answer = await forward(target, { incoming, body });
    if (typeof what === 'object') return send(response, await edited(answer, what.edit));
    if (what === 'lost response') return void response.socket?.resetAndDestroy();
    if (what !== 'half a response') return send(response, answer);
    response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length });
    response.write(answer.body.subarray(0, Math.floor(answer.body.length / 2)), () => {
      response.socket?.resetAndDestroy();
    });
  }

  return {
    url: `http://127.0.0.1:${port}/auth`,
    presented,
    reusing,
    set(next) {
      fate = next;
    },
    hideKeys(isHidden) {
      isWithoutKeys = isHidden;
    },
    editCodes(edit) {
      editCode = edit;
    },
    afterCodes(happens) {
      afterCode = happens;
    },
    close: () => closeServer(server),
  };
}

async function edited(answer: ForwardedAnswer, edit: Edit): Promise<ForwardedAnswer> {
  const members = await edit(JSON.parse(answer.body.toString('utf8')));
  return { ...answer, body: Buffer.from(JSON.stringify(members)) };
}

function send(response: ServerResponse, { status, headers, body }: ForwardedAnswer): void {
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}
