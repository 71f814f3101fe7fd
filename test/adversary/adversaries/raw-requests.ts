// Bytes that no client library sends: broken framing, garbage, heads that never end.
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../random.ts';
import type { Adversary, Attack } from './adversary.ts';
import { exchange, open, swarm, untilAborted } from './hostile-client.ts';

const end = '\r\n\r\n';
/** Requests that the services must reject, by RFC 9112 sections 3.2 and 6.3. */
const refused: Record<string, string> = {
  'two Host lines': `GET /health HTTP/1.1\r\nHost: a\r\nHost: b${end}`,
  'a malformed Host': `GET /health HTTP/1.1\r\nHost: a b${end}`,
  'no Host': `GET /health HTTP/1.1${end}`,
  'two lengths': `POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4${end}abcd`,
  'length and chunks': `POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked${end}0${end}`,
  CONNECT: `CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443${end}`,
};
const nasty = [
  'GET /health\r\n\r\n',
  `GET /health HTTP/1.1\r\nHost: a\r\nX: y\r\n z${end}`,
  `POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked${end}0${end}`,
  `POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked${end}ffffffffffffffff\r\n`,
  `POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 9007199254740993${end}x`,
  `POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1${end}x`,
  `GET /health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}${end}`,
  `GET /${'x'.repeat(60_000)} HTTP/1.1\r\nHost: a${end}`,
  `GET /health HTTP/1.1\r\nHost: a${end}`.repeat(200),
  `GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c${end}`,
  `PRI * HTTP/2.0${end}SM${end}`,
  `OPTIONS * HTTP/1.1\r\nHost: a${end}`,
  `GET http://[::1]:x/ HTTP/1.1\r\nHost: a${end}`,
  `GET /%00%ff%zz HTTP/1.1\r\nHost: \u0001${end}`,
];

/** Milliseconds to wait for a response, long enough for a busy machine. */
const patience = 3_000;

export const framing: Adversary = {
  name: 'framing',
  about: 'requests with broken framing, to every port',
  run: (attack) =>
    swarm(attack.signal, 4, async () => {
      const { random, complain } = attack;
      if (random.chance(0.5)) return void (await exchange(random.pick(ports(attack)), random.pick(nasty), 500));
      const [name, bytes] = random.pick(Object.entries(refused));
      const url = random.pick(mainPorts(attack));
      const started = Date.now();
      const text = await exchange(url, bytes, patience);
      if (text === '' && Date.now() - started >= patience) return;
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
      const hasTwo = /HTTP\/1\.1 \d{3}[\s\S]*HTTP\/1\.1 2\d\d/.test(text);
      if (status === 0 && name === 'CONNECT')
        complain(`CONNECT was closed without a response by ${serviceAt(attack, url)}`);
      else if ((status >= 200 && status < 400) || hasTwo)
        complain(`${name} got ${status} from ${serviceAt(attack, url)}`);
    }),
};

export const garbage: Adversary = {
  name: 'garbage',
  about: 'random bytes to every port, and heads with random bytes',
  run: (attack) => {
    const { random, signal } = attack;
    return swarm(signal, 6, () => exchange(random.pick(ports(attack)), noise(random), random.integer(20, 300)));
  },
};

function noise(from: Random): Buffer {
  const bytes = from.bytes(from.integer(1, 2_000));
  return from.chance(0.5) ? bytes : Buffer.concat([Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n'), bytes]);
}

export const slowHeads: Adversary = {
  name: 'slow-heads',
  about: '150 connections to each port whose heads never end',
  async run(attack) {
    const sockets: Socket[] = [];
    for (const url of ports(attack)) {
      for (let count = 0; count < 150 && !attack.signal.aborted; count += 1) {
        const socket = open(url);
        socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
        sockets.push(socket);
      }
      await delay(20);
    }
    const timer = setInterval(() => {
      for (const socket of sockets) socket.write('X-A: b\r\n');
    }, 1_000);
    await untilAborted(attack.signal);
    clearInterval(timer);
    for (const socket of sockets) socket.destroy();
  },
};

function serviceAt({ addresses }: Attack, url: string): string {
  const replicas = Object.entries(addresses.replicas);
  return replicas.find(([, list]) => list.some((replica) => replica.url === url))?.[0] ?? url;
}

const mainPorts = ({ addresses }: Attack) =>
  Object.values(addresses.replicas).flatMap((list) => list.map(({ url }) => url));

const ports = (attack: Attack) => [
  ...mainPorts(attack),
  ...Object.values(attack.addresses.replicas).flatMap((list) => list.map(({ metricsUrl }) => metricsUrl)),
];
