import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, hang, startFaultServer } from '../../test/support/fault-server.ts';
import { startTcpGate, type TcpGate } from '../../test/support/tcp-gate.ts';
import { HttpAgent } from './http-agent.ts';

/**
 * Milliseconds that a test waits until the agent suspects its connections. The agent does so after 3,000 ms; the other
 * 500 ms are a reserve for slow machines.
 */
const patience = 3_500;

let server: FaultServer;
let gate: TcpGate;
let agent: HttpAgent;

beforeEach(async () => {
  server = await startFaultServer(answerJson({ ok: true }));
  gate = await startTcpGate(server.port);
  agent = new HttpAgent();
});
afterEach(async () => {
  await agent.destroy();
  await gate.close();
  await server.close();
});

async function call(timeout = 20_000): Promise<number> {
  const signal = AbortSignal.timeout(timeout);
  const { statusCode, body } = await agent.request({
    ...{ origin: `http://127.0.0.1:${gate.port}`, path: '/', method: 'GET', signal },
  });
  await body.dump();
  return statusCode;
}

const callTogether = (count: number) => Promise.all(Array.from({ length: count }, () => call()));

describe('after a network has dropped all idle connections to a service', () => {
  it('only calls of the first seconds wait in vain, however many connections there were', async () => {
    await callTogether(8);
    gate.strand();
    const first = call(5_000).catch((error: Error) => error.name);
    await delay(patience);
    expect(await callTogether(8)).toEqual(Array(8).fill(200));
    expect(await first).toBe('TimeoutError');
  });
});

describe('a service that responds late', () => {
  it('still completes its calls, while other calls use new connections', async () => {
    let respond = () => {};
    server.behave((response, _request, count) => {
      const end = () => void response.end('{}');
      if (count > 1) end();
      else respond = end;
    });
    const slow = call();
    await delay(patience);
    expect(await call()).toBe(200);
    respond();
    expect(await slow).toBe(200);
  });

  it('does not keep the process from ending: its call fails', async () => {
    server.behave(hang);
    const slow = call().catch((error: Error) => error.name);
    await delay(patience);
    await agent.destroy();
    expect(await slow).toBe('ClientDestroyedError');
  });
});
