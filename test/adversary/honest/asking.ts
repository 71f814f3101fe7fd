// Requests of honest users: with a time limit, their responses read whole, and another status than the expected one an error.
import { Agent, request } from 'undici';
import { Unserved } from './recorder.ts';

export interface Asked {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  /** JSON unless it is a buffer. */
  body?: unknown;
  /** 200 unless told. */
  expect?: number;
}

export interface Answered {
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  /** Undefined where it is no JSON. */
  json: unknown;
}

export interface Asker {
  ask(url: string, asked?: Asked): Promise<Answered>;
  close(): void;
}

/** Longer waits are failures: nobody waits that long. */
const patience = 15_000;

export function createAsker(own: Record<string, string>): Asker {
  const agent = new Agent({ headersTimeout: patience, bodyTimeout: patience, connectTimeout: patience });
  return {
    async ask(url, { method = 'GET', headers, body, expect = 200 } = {}) {
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
        const what = `${method} ${path} answered ${describeProblem(response.statusCode, bytes.toString())}`;
        // Nothing that happens to a store ends a session.
        throw new Unserved(what, {
          status: response.statusCode,
          hasRetryAfter,
          isWrong: response.statusCode === 401,
        });
      }
      return { headers: response.headers, bytes, json: parseJson(bytes) };
    },
    // What is still open is of no interest any more.
    close: () => void agent.destroy().catch(() => undefined),
  };
}

/** Status, type and detail of a problem; the same for every instance. */
export function describeProblem(status: number, text: string): string {
  const type = /"type":"urn:formgate:problem:([\w-]+)"/.exec(text)?.[1];
  const detail = /"detail":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return type === undefined ? `${status} ${text.slice(0, 100)}` : `${status} ${type}: ${detail}`;
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
