// The upstream of the proxy bench: responds immediately with some bytes of JSON, or opens an event stream or a
// WebSocket and sends nothing more.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { acceptWebSocket } from '../support/upstream.ts';
import { ownUsage } from './contender.ts';

let url = '';

process.on('message', async (message: { settings: { bytes: number } } | 'url' | 'usage') => {
  if (message === 'usage') process.send?.(ownUsage());
  else if (message === 'url') process.send?.({ url });
  else {
    url = await start(message.settings.bytes);
    process.send?.({});
  }
});

async function start(bytes: number): Promise<string> {
  const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(bytes - 11) }));
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0]?.endsWith('/events')) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('data: hello\n\n');
      return;
    }
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body);
    });
  });
  server.on('upgrade', (request, socket) => acceptWebSocket(request, socket));
  server.keepAliveTimeout = 65_000;
  server.listen(0, '127.0.0.1', 10_000);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
