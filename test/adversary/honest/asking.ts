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
  close(): Promise<void>;
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
        const what = `${method} ${new URL(url).pathname.replace(/[0-9a-f-]{36}/, ':id')} answered ${response.statusCode}: ${bytes.toString().slice(0, 300)}`;
        // Nothing that happens to a store ends a session.
        throw new Unserved(what, {
          status: response.statusCode,
          hasRetryAfter,
          isWrong: response.statusCode === 401,
        });
      }
      return { headers: response.headers, bytes, json: parseJson(bytes) };
    },
    close: () => agent.destroy(),
  };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
