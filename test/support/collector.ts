// A collector of traces: an HTTP server that decodes OTLP (protobuf) and keeps the spans. Tests may make it slow, or
// make it respond with an error.
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenOnLowPort } from '../../dev/ports.ts';
import { noticeOutput } from './captured-log.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer } from './loopback-server.ts';

export interface CollectedSpan {
  service: string;
  resource: Record<string, string | number>;
  name: string;
  traceId: string;
  spanId: string;
  /** Empty for the first span of a trace. */
  parentId: string;
  /** Kind of the span: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  attributes: Record<string, string | number>;
  links: { traceId: string; spanId: string }[];
  isError: boolean;
}

export interface Collector {
  url: string;
  spans: CollectedSpan[];
  /** Path and headers of each request. */
  requests: { path: string; headers: Record<string, unknown> }[];
  /** Returns everything that the collector has received, as text, for searches. */
  raw(): string;
  /** Status with which the collector responds; at first 200. */
  status: number;
  /** Delay of each response, in milliseconds. */
  delay: number;
  /** Waits until `enough` accepts the spans, and returns them. Throws after a minute. */
  until(enough: (spans: CollectedSpan[]) => boolean): Promise<CollectedSpan[]>;
  close(): Promise<void>;
}

export async function openCollector(): Promise<Collector> {
  const bodies: Buffer[] = [];
  const server: Server = createHttpServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    await sleep(collector.delay, undefined, { ref: false });
    collector.requests.push({ path: request.url ?? '', headers: request.headers });
    if (collector.status === 200) {
      bodies.push(Buffer.concat(chunks));
      const received = decodeTraces(Buffer.concat(chunks));
      for (const span of received) noticeOutput(JSON.stringify(span));
      collector.spans.push(...received);
    }
    response.writeHead(collector.status, { 'Content-Type': 'application/x-protobuf' }).end();
  });
  const port = await listenOnLowPort(server);
  const collector: Collector = {
    url: `http://127.0.0.1:${port}`,
    ...{ spans: [], requests: [], status: 200, delay: 0 },
    raw: () => Buffer.concat(bodies).toString('latin1'),
    async until(enough) {
      for (const deadline = Date.now() + 60_000; !enough(collector.spans); await sleep(20)) {
        const names = collector.spans.map(({ service, name }) => `${service}: ${name}`).join('\n');
        if (Date.now() > deadline) throw new Error(`the collector got only these spans:\n${names}`);
      }
      return collector.spans;
    },
    close: () => closeServer(server),
  };
  return collector;
}

type Value = bigint | Buffer;
type Message = Map<number, Value[]>;

/** Reads one protobuf message: its values, keyed by field number. */
function decode(bytes: Buffer): Message {
  const message: Message = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    const value = wire === 0 ? varint() : take(wire === 1 ? 8 : wire === 5 ? 4 : Number(varint()));
    const known = message.get(tag >> 3);
    if (known) known.push(value);
    else message.set(tag >> 3, [value]);
  }
  return message;
}

const messages = (message: Message, field: number) => (message.get(field) ?? []).map((one) => decode(one as Buffer));
const text = (message: Message, field: number) => String(message.get(field)?.[0] ?? '');
const hex = (message: Message, field: number) => (message.get(field)?.[0] as Buffer | undefined)?.toString('hex') ?? '';

function attributesOf(message: Message, field: number): Record<string, string | number> {
  return Object.fromEntries(
    messages(message, field).map((pair) => {
      const [value = new Map() as Message] = messages(pair, 2);
      return [text(pair, 1), value.has(1) ? text(value, 1) : Number(value.get(3)?.[0] ?? Number.NaN)];
    }),
  );
}

function decodeTraces(bytes: Buffer): CollectedSpan[] {
  return messages(decode(bytes), 1).flatMap((group) => {
    const resource = attributesOf(messages(group, 1)[0] ?? new Map(), 1);
    const spans = messages(group, 2).flatMap((scope) => messages(scope, 2));
    return spans.map((span) => ({
      service: String(resource['service.name']),
      resource,
      name: text(span, 5),
      traceId: hex(span, 1),
      spanId: hex(span, 2),
      parentId: hex(span, 4),
      kind: Number(span.get(6)?.[0]),
      attributes: attributesOf(span, 9),
      links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
      isError: messages(span, 15).some((status) => status.get(3)?.[0] === 2n),
    }));
  });
}
