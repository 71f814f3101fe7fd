// Limits the number of values in a JSON text. Text with many short values is the most expensive: in 8 MiB of it, a
// million values can keep the main thread busy for seconds while they are parsed, compared and copied.

/**
 * Maximum number of values in a request body, and in a configuration document of a tenant. A form definition of 1 MiB
 * has about 50,000, and the largest register about 110,000.
 */
export const mostJsonValues = 200_000;

export const tooManyValues = `has more than ${mostJsonValues} JSON values`;

const [quote, backslash, comma, openArray, openObject] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b];

/**
 * Returns whether a JSON text has more than `most` values. It counts the commas and opening brackets outside strings,
 * which is the number of values in all objects and arrays. An empty object or array counts twice.
 */
export function hasMoreValues(json: string, most: number): boolean {
  if (json.length <= most) return false;
  let values = 0;
  for (let at = 0; at < json.length && values <= most; at += 1) {
    const code = json.charCodeAt(at);
    if (code === quote) at = endOfString(json, at);
    else if (code === comma || code === openArray || code === openObject) values += 1;
  }
  return values > most;
}

/** Returns the position of the closing quote. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length) {
    const code = json.charCodeAt(at);
    if (code === quote) return at;
    at += code === backslash ? 2 : 1;
  }
  return at;
}
