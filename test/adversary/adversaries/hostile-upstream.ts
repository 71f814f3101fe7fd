// An upstream that responds with broken framing and with disguised active content, and a person who sends requests to
// it.
import { createServer, type Socket } from 'node:net';
import type { Adversary } from './adversary.ts';
import { anyReplica, exchange, swarm, targetHead } from './hostile-client.ts';

const script = '<script>alert(1)</script>';
const withBody = (lines: string[], body = script) =>
  `HTTP/1.1 200 OK\r\n${[...lines, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`;

/** Responses with a script that a browser would run if the token handler forwarded them unchanged. */
const active = [
  withBody(['Content-Type: image/png, text/html']),
  withBody(['Content-Type: image/png', 'Content-Type: text/html']),
  withBody(['Content-Type: text/html xxx']),
  withBody(['Content-Type: text/xsl']),
  withBody(['Content-Type: multipart/x-mixed-replace; boundary=x']),
  withBody(['Content-Type: text/html', 'X-Content-Type-Options: none']),
  withBody(['Content-Type: text/html', 'Content-Security-Policy:']),
  withBody([]),
];

const framing = [
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(50),
  'HTTP/1.1 200 OK\r\nTrailer: X-Y\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
  'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 999 \r\n\r\n',
  'HTTP/1.1 200 OK\r\nBad Header\u0000: x\r\n\r\n',
  '\u0000\u0001\u0002',
  'SSH-2.0-OpenSSH_9\r\n',
  '',
];

export const hostileUpstream: Adversary = {
  name: 'hostile-upstream',
  about: 'an upstream with broken framing and active content',
  async run({ addresses, random, signal, complain }) {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => sockets.delete(socket));
      socket.on('data', (chunk) => {
        const [, kind, index = '0'] = /^[A-Z]+ \/h\/(active|framing)\/(\d+)/.exec(chunk.toString('latin1')) ?? [];
        if (kind === undefined) return;
        socket.write((kind === 'active' ? active : framing)[Number(index)] ?? '', 'latin1');
        if (random.chance(0.5)) socket.end();
        if (random.chance(0.1)) socket.resetAndDestroy();
      });
    });
    await new Promise<void>((done) => server.listen(addresses.hostileUpstreamPort, '127.0.0.1', done));
    await swarm(signal, 6, async () => {
      const kind = random.pick(['active', 'framing']);
      const index = random.integer(0, (kind === 'active' ? active : framing).length - 1);
      const method = kind === 'active' || random.chance(0.5) ? 'GET' : 'POST';
      const lines = method === 'POST' ? ['Content-Length: 5', 'Connection: close'] : ['Connection: close'];
      const head = targetHead(method, `hostile/${kind}/${index}`, random.pick(addresses.mallory), lines);
      const text = await exchange(
        anyReplica(addresses, 'token-handler', random),
        method === 'POST' ? `${head}hello` : head,
        1_500,
      );
      const problem = kind === 'active' ? judge(text) : undefined;
      if (problem !== undefined) complain(`active content ${index}: ${problem}`);
    });
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  },
};

/** Checks that the token handler added a sandbox to a document that could run scripts (decision 0029). */
function judge(text: string): string | undefined {
  const [head = ''] = text.split('\r\n\r\n', 1);
  if (!head.startsWith('HTTP/1.1 200') || !text.includes(script)) return undefined;
  if (!/^content-security-policy: [^\r]*sandbox/im.test(head)) return 'it arrived without a sandbox';
  if (/^x-content-type-options: (?!nosniff)/im.test(head)) return 'it arrived with sniffing allowed';
  return undefined;
}
