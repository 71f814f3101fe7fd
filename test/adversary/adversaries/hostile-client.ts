// Functions that send requests for adversaries: one at a time, concurrently, or as raw bytes. A missing response is not
// an error.
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Random } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';
import type { Service } from '../world/replica.ts';
import type { Person } from '../world/sign-in.ts';

export interface Response {
  /** 0 if there was no response. */
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface Sending {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  token?: string;
  /** Sent as JSON, unless it is a string. */
  body?: unknown;
  signal?: AbortSignal;
}

const agent = new Agent({ headersTimeout: 20_000, bodyTimeout: 20_000, pipelining: 1 });

export async function send(
  url: string,
  { method = 'GET', headers, token, body, signal }: Sending = {},
): Promise<Response> {
  try {
    const response = await request(url, {
      method,
      dispatcher: agent,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  } catch {
    return { status: 0, headers: {}, text: '' };
  }
}

/** Repeats `work` in `lanes` concurrent loops until the signal is aborted. */
export async function swarm(signal: AbortSignal, lanes: number, work: () => Promise<unknown>): Promise<void> {
  const lane = async () => {
    while (!signal.aborted) {
      await work().catch(() => undefined);
      // All processes share this machine. Without a pause, the adversary itself would use up the CPU and slow the
      // services down.
      await delay(10);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
}

/** Opens a connection, and ignores its errors. */
export function open(url: string): Socket {
  const { port } = new URL(url);
  return connect({ port: Number(port), host: '127.0.0.1' }).on('error', () => undefined);
}

/** Writes bytes, and resolves with the bytes that arrive until the other side closes or `milliseconds` have passed. */
export function exchange(url: string, bytes: string | Buffer, milliseconds = 2_000): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = open(url);
    const timer = setTimeout(() => socket.destroy(), milliseconds);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(received);
    });
    socket.write(bytes);
  });
}

export function anyReplica(addresses: Addresses, service: Service, random: Random): string {
  return random.pick(addresses.replicas[service]).url;
}

/** Returns the request line and the headers of a request that a signed-in person sends through the proxy. */
export function targetHead(method: string, path: string, { cookie, csrf }: Person, lines: string[] = []): string {
  return [
    `${method} /token-handler/v1/targets/${path} HTTP/1.1`,
    'Host: localhost',
    `Cookie: ${cookie}`,
    `X-XSRF-TOKEN: ${csrf}`,
    ...lines,
    '\r\n',
  ].join('\r\n');
}
