// HTTP at the byte level, for requests that no client library would send.
import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  /** The response's headers, keyed by lower-case name. */
  headers: Map<string, string>;
  body: string;
  text: string;
}

/**
 * Writes `bytes` to a port on loopback. Resolves with the response when all bytes that its Content-Length announces
 * have arrived, or when the other side closes. If `cut` is set, closes the sending side after writing.
 */
export function sendRaw(port: number, bytes: string | Buffer, options: { cut?: boolean } = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.write(bytes);
      if (options.cut) socket.end();
    });
    const answer = () => parseAnswer(Buffer.concat(chunks).toString('utf8'));
    socket.setTimeout(8_000, () => socket.destroy(new Error('no complete answer in 8 s')));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      const { headers, body } = answer();
      if (Buffer.byteLength(body) >= Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY))
        socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer()));
  });
}

function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, body: rest.join('\r\n\r\n'), text };
}
