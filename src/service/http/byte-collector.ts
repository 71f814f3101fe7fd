// Collects the chunks of a body in one buffer, because a Buffer object for each chunk of one byte takes about 500 bytes:
// 500 MB for a body of 1 MiB.

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
 * Creates a collector. `expected` is the announced length. The buffer doubles as bytes arrive, so that it is at most
 * twice as large as the bytes so far, or 64 KiB.
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
