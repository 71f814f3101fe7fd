// Ends an answer with its last piece. It knows nothing of what the piece holds.
import type { Response } from 'express';

/** Bytes up to which a copy costs less than a second piece to write. */
const small = 8_192;

/** With a text, Node writes head and body in one piece; Latin-1 is each byte as it is. */
export function endWith(response: Response, chunk: Buffer): void {
  if (chunk.length <= small) response.end(chunk.toString('latin1'), 'latin1');
  else response.end(chunk);
}
