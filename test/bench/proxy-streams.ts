// A process that holds event streams or WebSockets open for the proxy bench.
import { Agent, get } from 'node:http';
import type { Duplex } from 'node:stream';

export interface StreamsSettings {
  kind: 'event-stream' | 'websocket';
  url: string;
  headers: Record<string, string>;
  count: number;
}

const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
/** Sockets of the open WebSockets. Without a reference, Node would collect and close them. */
const sockets: Duplex[] = [];

process.on('message', async (message: { settings: object } | { open: StreamsSettings }) => {
  if ('open' in message) {
    await openAll(message.open);
    process.send?.({ open: message.open.count });
  } else process.send?.({});
});

async function openAll({ kind, url, headers, count }: StreamsSettings): Promise<void> {
  const openOne = kind === 'websocket' ? openWebSocket : openEventStream;
  // Opens 100 streams at a time, because a listener's queue of new connections is short.
  for (let opened = 0; opened < count; opened += 100)
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, () => openOne(url, headers)));
}

function openEventStream(url: string, headers: Record<string, string>): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { ...headers, Accept: 'text/event-stream' } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`an event stream got ${response.statusCode}`));
      response.once('data', () => resolve());
      response.on('error', () => undefined);
    });
    request.once('error', reject);
  });
}

function openWebSocket(url: string, headers: Record<string, string>): Promise<void> {
  const handshake = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, headers: { ...headers, ...handshake } }, (response) =>
      reject(new Error(`a WebSocket got ${response.statusCode}`)),
    );
    request.once('error', reject);
    request.once('upgrade', (_response, socket) => {
      socket.on('error', () => undefined);
      sockets.push(socket);
      resolve();
    });
  });
}
