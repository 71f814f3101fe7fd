// Adversaries that abort requests at random points: requests to the form service, and uploads while the connection to
// the upstream is pending, refused or busy.
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { definitionId } from '../world/preparation.ts';
import type { Adversary, Attack } from './adversary.ts';
import { anyReplica, open, send, swarm, targetHead } from './hostile-client.ts';

export const uploadAborts: Adversary = {
  name: 'upload-aborts',
  about: 'aborted uploads while the upstream connection is in a TLS handshake, refused or open',
  async run(attack) {
    const { addresses, random, signal } = attack;
    const silent = new Set<Socket>();
    const server = createServer((socket) => {
      silent.add(socket.on('error', () => undefined));
      socket.once('close', () => silent.delete(socket));
    });
    await new Promise<void>((done) => server.listen(addresses.stuckTlsPort, '127.0.0.1', done));
    await swarm(signal, 12, async () => {
      const target = random.pick(['stuck', 'stuck', 'dead', 'api/echo', 'api/download?bytes=9000000']);
      const framing = random.pick(['Content-Length: 5000000', 'Transfer-Encoding: chunked']);
      const lines = [framing, ...(random.chance(0.2) ? ['Expect: 100-continue'] : [])];
      const bytes = targetHead('POST', target, random.pick(addresses.mallory), lines);
      await breakOff(attack, anyReplica(addresses, 'token-handler', random), bytes);
    });
    for (const socket of silent) socket.destroy();
    await new Promise((done) => server.close(done));
  },
};

export const formAborts: Adversary = {
  name: 'form-aborts',
  about: 'requests to the form service, aborted at random points',
  async run(attack) {
    const { addresses, random, signal } = attack;
    const { hostileIntake } = addresses.tokens;
    const url = anyReplica(addresses, 'forms', random);
    const applicant = {
      addressAs: 'Trudy',
      channels: [{ channel: 'email', address: `${random.word(9)}@example.net` }],
    };
    const body = { definitionId, applicant };
    const created = await send(`${url}/form/v1/forms`, { method: 'POST', token: hostileIntake, body });
    const id = /"id":"([^"]+)"/.exec(created.text)?.[1] ?? 'none';
    await swarm(signal, 8, async () => {
      const [method, path] = random.pick([
        ['PUT', `/${id}/data`],
        ['POST', ''],
        ['POST', `/${id}`],
        ['GET', `/${id}`],
      ] as const);
      const lines = ['Host: localhost', `Authorization: Bearer ${hostileIntake}`, 'Content-Type: application/json'];
      const head = `${method} /form/v1/forms${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\nContent-Length: 60000\r\n\r\n`;
      await breakOff(attack, anyReplica(addresses, 'forms', random), `${head}{"data":{"a":"`);
    });
  },
};

/** Sends the beginning of a request, waits, and resets or closes the connection. */
async function breakOff({ random }: Attack, url: string, head: string): Promise<void> {
  const socket = open(url);
  socket.resume();
  socket.write(head);
  if (random.chance(0.7)) socket.write(random.bytes(random.integer(1, 3_000)));
  await delay(random.integer(0, 120));
  if (random.chance(0.5)) socket.resetAndDestroy();
  else socket.destroy();
}
