// Chooses how the body of a route is read, and reads bodies that are text of one media type, such as CSV. Like
// json-body.ts, this module rejects NUL and text that is not UTF-8, because Postgres cannot store them.
import { isUtf8 } from 'node:buffer';
import { bodyProblem, readBodyBytes } from './body-bytes.ts';
import { createJsonBodyReader, isOtherCharset, type JsonBodyReader, noBody } from './json-body.ts';
import { hasBody } from './request-framing.ts';

const byteOrderMark = /^\uFEFF/;

/** Returns a function that creates the body reader of a route. `most` is the app's limit in bytes. */
export function createBodyReaders(most: number) {
  const readJson = createJsonBodyReader(most);
  return ({ bodyType, bodyLimit = most }: { bodyType?: string; bodyLimit?: number }): JsonBodyReader => {
    if (bodyType !== undefined) return createTextBodyReader(bodyType, Math.min(bodyLimit, most));
    return bodyLimit < most ? createJsonBodyReader(bodyLimit) : readJson;
  };
}

/**
 * Creates a reader of text bodies. It returns the text without a byte order mark. `mediaType` is in lower case, without
 * parameters. `limit` is in bytes, and applies before and after decompression.
 */
function createTextBodyReader(mediaType: string, limit: number): JsonBodyReader {
  return async (request, minimumRate) => {
    if (!hasBody(request)) return noBody;
    const contentType = request.headers['content-type'] ?? '';
    if (contentType.split(';', 1)[0]?.trim().toLowerCase() !== mediaType)
      throw bodyProblem('unsupported-media-type', `must be sent as ${mediaType}`);
    if (isOtherCharset(contentType)) throw bodyProblem('unsupported-media-type', 'must be in UTF-8');
    const bytes = await readBodyBytes(request, limit, minimumRate);
    if (!isUtf8(bytes)) throw bodyProblem('invalid-request', 'is not UTF-8');
    if (bytes.includes(0)) throw bodyProblem('invalid-request', 'contains a NUL character');
    return { value: bytes.toString('utf8').replace(byteOrderMark, ''), textOf: () => undefined };
  };
}
