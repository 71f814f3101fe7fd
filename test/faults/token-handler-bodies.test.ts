// A large upload and a large download through the token handler, which runs in a separate process, so that its memory
// can be measured. The memory does not depend on the length of a body, so the default length is short. BODY_MIB=1024
// makes each body 1 GiB.
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sizeOf } from '../support/sizes.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenHandlerProcess, type TokenHandlerProcess } from '../support/token-handler-process.ts';

const mebibyte = 1_048_576;
const length = sizeOf('BODY_MIB') * mebibyte;
const mostGrowth = 32 * mebibyte;

let world: TargetWorld;
let handler: TokenHandlerProcess;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  handler = await startTokenHandlerProcess({ env: world.handler.env });
});
afterAll(async () => {
  await handler.stop();
  await world.close();
});

const block = randomBytes(mebibyte);

/** Yields the same blocks at every call. Each block differs from the previous one. */
function* blocks(): Generator<Buffer> {
  for (let sent = 0; sent < length; sent += mebibyte) {
    block.writeUInt32LE(sent / mebibyte);
    yield Buffer.from(block);
  }
}

const sumOfAll = () => blocks().reduce((sum, one) => crc32(one, sum), 0);

async function sumOf(body: AsyncIterable<Buffer>): Promise<number> {
  let sum = 0;
  for await (const chunk of body) sum = crc32(chunk, sum);
  return sum;
}

/** Returns the highest RSS of the token handler while `work` runs, in bytes. */
async function peakOf(work: Promise<unknown>): Promise<number> {
  let peak = 0;
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    peak = Math.max(peak, await handler.residentBytes());
    await delay(20);
  }
  await over;
  return Math.max(peak, await handler.residentBytes());
}

const report = (what: string, before: number, peak: number) =>
  process.stdout.write(
    `${what} of ${length / mebibyte} MiB: RSS ${Math.round(before / mebibyte)} to ${Math.round(peak / mebibyte)} MiB\n`,
  );

it('a large upload and a large download arrive unchanged, and the memory of the token handler grows by at most 32 MiB', {
  timeout: 600_000,
}, async () => {
  const expected = sumOfAll();
  let received: Promise<number> | undefined;
  world.upstream.answer = (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': length });
      pipeline(Readable.from(blocks()), response).catch(() => undefined);
    } else {
      received = sumOf(request);
      received.then(() => response.end('stored')).catch(() => response.destroy());
    }
  };
  // Warms up the token handler, so that one-time memory, such as compiled code, is not measured.
  for (let call = 0; call < 1_000; call += 1) await world.send({ url: handler.url, method: 'HEAD' });
  const before = await handler.residentBytes();

  const upload = world.start({ url: handler.url, method: 'PUT', headers: { 'Content-Length': length } });
  const uploaded = pipeline(Readable.from(blocks()), upload.request).then(() => upload.answer);
  const peakOfUpload = await peakOf(uploaded);
  report('upload', before, peakOfUpload);
  expect((await uploaded).statusCode).toBe(200);
  expect(await received).toBe(expected);

  const download = world.start({ url: handler.url });
  download.request.end();
  const downloaded = download.answer.then(sumOf);
  const peakOfDownload = await peakOf(downloaded);
  report('download', before, peakOfDownload);
  expect(await downloaded).toBe(expected);
  expect(Math.max(peakOfUpload, peakOfDownload) - before).toBeLessThanOrEqual(mostGrowth);
});
