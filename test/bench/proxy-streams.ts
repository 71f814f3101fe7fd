// A process that holds event streams open for the proxy bench.
import { Agent, get } from 'node:http';

export interface StreamsSettings {
  url: string;
  headers: Record<string, string>;
  count: number;
}

const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });

process.on('message', async (message: { settings: object } | { open: StreamsSettings }) => {
  if ('open' in message) {
    await openAll(message.open);
    process.send?.({ open: message.open.count });
  } else process.send?.({});
});

async function openAll({ url, headers, count }: StreamsSettings): Promise<void> {
  // Opens 100 streams at a time, because a listener's queue of new connections is short.
  for (let opened = 0; opened < count; opened += 100)
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, () => openOne(url, headers)));
}

function openOne(url: string, headers: Record<string, string>): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { ...headers, Accept: 'text/event-stream' } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`an event stream got ${response.statusCode}`));
      response.once('data', () => resolve());
      response.on('error', () => undefined);
    });
    request.once('error', reject);
  });
}
