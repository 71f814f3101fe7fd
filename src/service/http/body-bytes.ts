// Reads and decompresses the body of a request. Both the sent bytes and the decompressed bytes must be within the
// limit, even if the body is chunked.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { Problem } from './problem.ts';
import type { ProblemSlug } from './problem-types.ts';

/**
 * The minimum average rate of a body. The rate includes all bytes that have arrived, but the first `grace` milliseconds
 * of reading do not count as time.
 */
export interface MinimumRate {
  bytesPerSecond: number;
  grace: number;
}

/**
 * A slower body is refused, because its request would occupy memory or a slot of a queue that other requests need.
 * Almost all mobile connections are faster. Without this limit, a client that sends a byte occasionally could keep the
 * memory and the slot for 300 s, Node's own limit.
 */
export const usualRate: MinimumRate = { bytesPerSecond: 8_192, grace: 30_000 };

/**
 * Reads the whole body: at most `limit` bytes before and after decompression. Node discards the rest of a rejected
 * body, so that the client can read the response. Throws Problems 400, 413 and 415, and 408 for a body that is slower
 * than the minimum rate. The rate may change during the request: `minimumRate` is called about once a second.
 */
export async function readBodyBytes(
  request: IncomingMessage,
  limit: number,
  minimumRate = (): MinimumRate => usualRate,
): Promise<Buffer> {
  const decompress = decompressorOf(request.headers['content-encoding']);
  if (Number(request.headers['content-length']) > limit) throw tooLarge(limit);
  const bytes = await collect(request, limit, minimumRate);
  return decompress && bytes.length > 0 ? decompress(bytes, limit) : bytes;
}

/** Maximum size in bytes of a body that is certainly small. */
export const smallBody = 16_384;

/**
 * True if the body is large, or if its size is unknown because the body is chunked or compressed. `limit` is the
 * maximum size that the reader of the body accepts.
 */
export function mayBeLarge({ headers }: IncomingMessage, limit = Number.POSITIVE_INFINITY): boolean {
  if (limit <= smallBody) return false;
  if (headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > smallBody;
}

type Decompress = (bytes: Buffer, limit: number) => Promise<Buffer>;

const decompressors = new Map<string, Decompress>(
  Object.entries({ gzip: gunzip, 'x-gzip': gunzip, deflate: inflate, br: brotliDecompress }).map(([coding, method]) => [
    coding,
    limited(promisify(method)),
  ]),
);

function limited(method: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>): Decompress {
  return (bytes, limit) =>
    method(bytes, { maxOutputLength: limit }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
      throw bodyProblem('invalid-request', 'cannot be decompressed as its Content-Encoding states', error);
    });
}

// RFC 9110 section 8.4 permits a list of codings. Formgate supports only one coding per request.
function decompressorOf(contentEncoding: string | undefined): Decompress | undefined {
  if (contentEncoding === undefined) return undefined;
  const coding = contentEncoding.trim().toLowerCase();
  const decompress = decompressors.get(coding);
  if (decompress || coding === '' || coding === 'identity') return decompress;
  // RFC 9110 section 12.5.3: a 415 response lists the supported codings.
  throw bodyProblem('unsupported-media-type', 'has an unsupported Content-Encoding', undefined, {
    'Accept-Encoding': 'gzip, deflate, br',
  });
}

function collect(request: IncomingMessage, limit: number, minimumRate: () => MinimumRate): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const collected = createByteCollector(Number(request.headers['content-length'] ?? 0));
  const onSlow = () => {
    settle();
    reject(tooSlow());
  };
  // A body that has already arrived needs no timer.
  const stopWatch = request.complete ? undefined : watchRate(minimumRate, () => collected.length, onSlow);
  const settle = () => {
    stopWatch?.();
    request.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut);
  };
  const onData = (chunk: Buffer) => {
    if (collected.length + chunk.length > limit) {
      settle();
      reject(tooLarge(limit));
    } else collected.add(chunk);
  };
  const onEnd = () => {
    settle();
    resolve(collected.bytes());
  };
  const onCut = (error?: Error) => {
    settle();
    reject(bodyProblem('invalid-request', 'ended before it was complete', error));
  };
  request.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut);
  // If the client disconnected earlier, for example while the request waited for a slot, no further event follows.
  if (request.destroyed) onCut();
  return promise;
}

/** Milliseconds after which the minimum rate of a body is checked again, at the latest. */
const longestPause = 1_000;

/** Calls `end` once when the body is too slow. The returned function stops the watch. */
function watchRate(minimumRate: () => MinimumRate, lengthSoFar: () => number, end: () => void): () => void {
  const began = performance.now();
  let timer: NodeJS.Timeout;
  const check = () => {
    const { bytesPerSecond, grace } = minimumRate();
    const left = grace + (lengthSoFar() / bytesPerSecond) * 1_000 - (performance.now() - began);
    if (left <= 0) end();
    else timer = setTimeout(check, Math.min(Math.ceil(left), longestPause));
  };
  check();
  return () => clearTimeout(timer);
}

// RFC 9110 section 15.5.9: the server closes the connection, because it no longer waits for the rest of the request.
function tooSlow(): Problem {
  const detail = 'The request body arrived too slowly. Send it again over a faster connection.';
  return new Problem('request-timeout', detail, { headers: { Connection: 'close' } });
}

function tooLarge(limit: number): Problem {
  return bodyProblem('body-too-large', `is larger than ${limit} bytes`);
}

/** Returns a problem that concerns the whole body. Its pointer is empty (RFC 6901 section 5). */
export function bodyProblem(
  slug: ProblemSlug,
  detail: string,
  cause?: unknown,
  headers: Record<string, string> = {},
): Problem {
  return new Problem(slug, `The body ${detail}.`, { errors: [{ pointer: '', detail }], cause, headers });
}

/** Maximum size of the first buffer. A client may announce a long body and never send it. */
const largestStart = 65_536;

export interface ByteCollector {
  /** Number of bytes so far. */
  readonly length: number;
  add(chunk: Uint8Array): void;
  /** Returns all bytes. Call it once, at the end. */
  bytes(): Buffer;
}

/**
 * Creates a collector, which copies the chunks of a body into one buffer. If the chunks were kept instead, the Buffer
 * object of each chunk would take about 500 bytes, even for a single byte. `expected` is the announced length. The
 * buffer doubles as bytes arrive, so its size never exceeds the larger of 64 KiB and twice the bytes so far.
 */
export function createByteCollector(expected = 0): ByteCollector {
  let first: Uint8Array | undefined;
  let buffer: Buffer | undefined;
  let length = 0;

  /** Returns a buffer with all bytes so far and space for `size` bytes. */
  function grown(size: number): Buffer {
    if (buffer && buffer.length >= size) return buffer;
    const doubled = Math.max(Math.min(expected, largestStart), 2 * (buffer?.length ?? 0), size);
    const larger = Buffer.allocUnsafeSlow(expected >= size ? Math.min(doubled, expected) : doubled);
    larger.set(buffer?.subarray(0, length) ?? first ?? []);
    return larger;
  }

  return {
    get length() {
      return length;
    },
    add(chunk) {
      // A body that arrives in one chunk is not copied.
      if (length === 0) first = chunk;
      else {
        buffer = grown(length + chunk.length);
        buffer.set(chunk, length);
        first = undefined;
      }
      length += chunk.length;
    },
    bytes() {
      if (buffer) return buffer.subarray(0, length);
      return first ? Buffer.from(first.buffer, first.byteOffset, first.byteLength) : Buffer.alloc(0);
    },
  };
}
