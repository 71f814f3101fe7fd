// Requests of honest users. Each has a time limit, and an unexpected status is an error.
import { Agent, request } from 'undici';
import { jsonOrUndefined } from '../../../src/service/json-value.ts';
import { Unserved } from './recorder.ts';

export interface SentRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  /** Sent as JSON, unless it is a buffer. */
  body?: unknown;
  /** The expected status; by default 200. */
  expect?: number;
}

export interface ReceivedResponse {
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  /** Undefined if the body is not JSON. */
  json: unknown;
}

export interface Sender {
  send(url: string, options?: SentRequest): Promise<ReceivedResponse>;
  close(): void;
}

/** Milliseconds after which a request counts as failed. */
const patience = 15_000;

/**
 * Milliseconds after which a user opens a new connection, as browsers and proxies do. Otherwise, all connections would
 * stay at one replica after the other replica has restarted.
 */
const connectionLife = 20_000;

export function createSender(own: Record<string, string>): Sender {
  const agent = new Agent({
    headersTimeout: patience,
    bodyTimeout: patience,
    connectTimeout: patience,
    clientTtl: connectionLife,
  });
  return {
    async send(url, { method = 'GET', headers, body, expect = 200 } = {}) {
      const isBytes = Buffer.isBuffer(body);
      const type = isBytes ? 'application/octet-stream' : 'application/json';
      const response = await request(url, {
        method,
        dispatcher: agent,
        signal: AbortSignal.timeout(patience),
        headers: { ...own, ...(body !== undefined && { 'content-type': type }), ...headers },
        ...(body !== undefined && { body: isBytes ? body : JSON.stringify(body) }),
      });
      const bytes = Buffer.from(await response.body.arrayBuffer());
      if (response.statusCode !== expect) {
        const hasRetryAfter = response.headers['retry-after'] !== undefined;
        const path = new URL(url).pathname.replace(/[0-9a-f-]{36}/, ':id');
        const what = `${method} ${path} got ${describeProblem(response.statusCode, bytes.toString())}`;
        // A 401 is always wrong, because no fault of a store ends a session.
        throw new Unserved(what, {
          status: response.statusCode,
          hasRetryAfter,
          isWrong: response.statusCode === 401,
        });
      }
      return { headers: response.headers, bytes, json: jsonOrUndefined(bytes.toString()) };
    },
    // `destroy` also drops responses that are not complete.
    close: () => void agent.destroy().catch(() => undefined),
  };
}

/**
 * Returns the status, type and detail of a problem response. They contain no ids, so that equal problems have equal
 * descriptions and can be counted.
 */
export function describeProblem(status: number, text: string): string {
  const type = /"type":"urn:formgate:problem:([\w-]+)"/.exec(text)?.[1];
  const detail = /"detail":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return type === undefined ? `${status} ${text.slice(0, 100)}` : `${status} ${type}: ${detail}`;
}
