// Tests how connections to identity providers look up hosts. Only the system's name resolution is scripted.
import { createServer, type RequestListener } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, it, onTestFinished, vi } from 'vitest';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { type Answer, createSystemLookups } from '../../../test/support/system-lookups.ts';
import { HostLookups } from '../http/host-lookups.ts';
import { createProviderAgent, fetchFromProvider } from './provider-fetch.ts';

async function startProvider(respond: RequestListener = (_request, response) => response.end('keys')): Promise<number> {
  const server = createServer(respond);
  onTestFinished(() => void server.close());
  return listenOnLoopback(server);
}

async function startAgent(answers: Record<string, Answer>, slots: { total: number; perTenant: number }) {
  const port = await startProvider();
  const system = createSystemLookups(8, answers);
  const agent = createProviderAgent(new HostLookups({ slots, lookup: system.lookup }));
  const ask = async (host: string) => {
    const { body } = await agent.request({ origin: `http://${host}:${port}`, path: '/', method: 'GET' });
    return body.text();
  };
  return { system, agent, ask };
}

it('an identity provider whose name servers do not respond does not delay the others', async () => {
  const answers: Record<string, Answer> = { 'silent.example': 'silent', 'id.example': '127.0.0.1' };
  const { system, agent, ask } = await startAgent(answers, { total: 2, perTenant: 2 });
  const late = Array.from({ length: 20 }, () => ask('silent.example').catch(({ code }) => code));
  await expect.poll(() => system.running()).toBe(1);
  expect(await ask('id.example')).toBe('keys');
  expect(system.asked).toEqual(['silent.example', 'id.example']);
  system.endAll();
  expect(new Set(await Promise.all(late))).toEqual(new Set(['ENOTFOUND']));
  await agent.close();
});

it('identity providers whose name servers do not respond again do not delay the others, however many they are', async () => {
  const silent = ['a.example', 'b.example', 'c.example', 'd.example'];
  const answers: Record<string, Answer> = { 'id.example': '127.0.0.1' };
  for (const host of silent) answers[host] = 'silent';
  const { system, agent, ask } = await startAgent(answers, { total: 3, perTenant: 2 });
  const askAll = () => Promise.all(silent.map((host) => ask(host).catch(({ code }) => code)));
  const end = async (asking: Promise<unknown[]>) => {
    const timer = setInterval(() => system.endAll(), 10);
    expect(new Set(await asking.finally(() => clearInterval(timer)))).toEqual(new Set(['ENOTFOUND']));
  };
  await end(askAll());
  // Failures are remembered for 5 s.
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_000);
  onTestFinished(() => clock.mockRestore());
  const again = askAll();
  await expect.poll(() => system.running()).toBe(2);
  expect(await ask('id.example')).toBe('keys');
  await end(again);
  await agent.close();
});

it('a host name is looked up by the system', async () => {
  const port = await startProvider();
  const response = await fetchFromProvider(`http://localhost:${port}/`, {});
  expect(await response.text()).toBe('keys');
});

it.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
] as const)('a response that is compressed with %s is refused, and not decompressed', async (coding, compress) => {
  const body = compress(Buffer.alloc(64 * 1_048_576));
  expect(body.length).toBeLessThan(100_000);
  const codings: unknown[] = [];
  const port = await startProvider((request, response) => {
    codings.push(request.headers['accept-encoding']);
    response.writeHead(200, { 'content-encoding': coding }).end(body);
  });
  await expect(fetchFromProvider(`http://127.0.0.1:${port}/`, {})).rejects.toMatchObject({
    cause: { message: expect.stringContaining('the response is compressed') },
  });
  expect(codings).toEqual(['identity']);
});

it('a response whose coding is identity is accepted', async () => {
  const port = await startProvider((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'identity' }).end('keys');
  });
  expect(await (await fetchFromProvider(`http://127.0.0.1:${port}/`, {})).text()).toBe('keys');
});
