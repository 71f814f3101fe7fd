// A server in front of the real upstream. It counts requests that have an effect, and forwards all others. The token
// handler must not repeat a request that an upstream may have processed.
import { request } from 'node:http';
import { listen } from '../../dev/listen.ts';
import { basePath } from '../adversary/world/upstream.ts';

export interface Effects {
  port: number;
  /** Number of requests to `/effects/:id`, keyed by the id. */
  counts: Map<string, number>;
  close(): Promise<void>;
}

export async function startEffects(upstreamPort: number): Promise<Effects> {
  const counts = new Map<string, number>();
  const prefix = `${basePath}/effects/`;
  const { port, close } = await listen((incoming, response) => {
    response.on('error', () => undefined);
    if (incoming.url?.startsWith(prefix)) {
      const id = incoming.url.slice(prefix.length);
      counts.set(id, (counts.get(id) ?? 0) + 1);
      incoming.resume().once('end', () => response.writeHead(201).end('{}'));
      return;
    }
    const { method, url: path, headers } = incoming;
    const outgoing = request({ port: upstreamPort, host: '127.0.0.1', method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy()).pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.once('close', () => outgoing.destroy());
    incoming.on('error', () => outgoing.destroy()).pipe(outgoing);
  });
  return { port, counts, close };
}
