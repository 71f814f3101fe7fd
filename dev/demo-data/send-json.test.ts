// Tests that requests which write demo data are repeated while a service is overloaded, against a server whose statuses
// the test chooses.
import type { Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { createHttpServer } from '../../test/support/http-server.ts';
import { listenOnLowPort } from '../ports.ts';
import { sendJson } from './send-json.ts';

let server: Server | undefined;
afterEach(() => new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve())));

/** Starts a server that responds with the statuses in turn. Returns its URL, and the bodies that it receives. */
async function serve(statuses: number[]): Promise<{ url: string; received: string[] }> {
  const received: string[] = [];
  const remaining = [...statuses];
  server = createHttpServer(async (request, response) => {
    received.push((await buffer(request)).toString());
    response.writeHead(remaining.shift() ?? 500).end(String(received.length));
  });
  const port = await listenOnLowPort(server);
  return { url: `http://127.0.0.1:${port}/`, received };
}

const put = (url: string) => sendJson({ method: 'PUT', url, token: 'any', body: { entries: 2 } });

it('a request is repeated while the service is overloaded or a service behind it fails', async () => {
  const { url, received } = await serve([503, 502, 201]);
  expect(await put(url)).toEqual({ status: 201, text: '3' });
  expect(received).toEqual(Array(3).fill('{"entries":2}'));
});

it('a request that is refused for another reason is not repeated', async () => {
  const { url, received } = await serve([403, 201]);
  expect(await put(url)).toEqual({ status: 403, text: '1' });
  expect(received).toHaveLength(1);
});
