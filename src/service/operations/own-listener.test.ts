// Tests the port on which a process serves its calls to itself, with real connections.
import { once } from 'node:events';
import { get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { ownCallHeaders } from '../http/own-calls.ts';
import { createOwnListener, type OwnListener } from './own-listener.ts';

let listener: OwnListener;
afterEach(() => listener.close());

async function start(app: RequestListener): Promise<string> {
  listener = createOwnListener();
  await listener.listen(app);
  return listener.url();
}

async function ask(url: string, headers: Record<string, string>): Promise<string> {
  const [response] = (await once(get(url, { headers, agent: false }), 'response')) as [IncomingMessage];
  return text(response);
}

it('gives nobody else a response, so that a process on the same machine gains nothing', async () => {
  let served = 0;
  const url = await start((_request, response) => {
    served += 1;
    response.end('served');
  });
  expect(await ask(url, ownCallHeaders)).toBe('served');
  const [name = ''] = Object.keys(ownCallHeaders);
  for (const headers of [{}, { [name]: 'guessed' }, { 'x-forwarded-for': '192.0.2.1' }])
    await expect(ask(url, headers)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(served).toBe(1);
});

it('is closed when a running call has its response', async () => {
  const begun = Promise.withResolvers<ServerResponse>();
  const url = await start((_request, response) => begun.resolve(response));
  const answer = ask(url, ownCallHeaders);
  const response = await begun.promise;
  const closed = listener.close();
  response.end('served');
  expect(await answer).toBe('served');
  await closed;
  const { port, hostname } = new URL(url);
  await expect(once(connect(Number(port), hostname), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
