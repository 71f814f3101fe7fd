// Generates JSON bodies of a form's data, and bodies that are almost valid, from a seed. Names and strings consist of
// pieces that parsers and databases treat differently.

export interface FuzzedBody {
  bytes: Buffer;
  /** The text of the member `data`; undefined if bytes were changed afterwards. */
  data: string | undefined;
}

const plainPieces = ['', ' ', ...'a q u x 0 1 data é 😀 : { u0000 prototype constructor __proto__'.split(' ')];
const escapes = String.raw`\\ \" \n \t \/ \u0061 \u00e9 \u005c \ud83d\ude00 \u0000 \ud800 \udc00`.split(' ');
const namePieces = [...plainPieces, ...escapes];
const textPieces = [...namePieces, 'High Street', '\\r\\n', ',', ']', '\\x', '\t', '\\u12'];
const numbers = '0 -0 1 12 1.0 -2.50 1e5 1E-3 0.30000000000000004 1e300 1e-999 9007199254740992'.split(' ');
const wrongNumbers = '9007199254740993 123456789012345678901 1e999 1e-99999 01 - 1. +1 .5 0x1 NaN'.split(' ');
const spaces = ['', '', '', '', ' ', '\n', '\r\n\t'];

/** Returns a function that generates one body at each call. The same seed gives the same bodies. */
export function createBodyFuzzer(seed: number): () => FuzzedBody {
  const random = randomFrom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  // Most names avoid the last three pieces, which are always refused. Otherwise, few bodies would be accepted.
  const most = namePieces.length - 3;
  const piece = (list: readonly string[]) => (random() < 0.9 ? namePieces[below(most)] : oneOf(list));
  const quoted = (list: readonly string[]) => {
    let text = '';
    for (let count = below(3); count >= 0; count -= 1) text += piece(list);
    return `"${text}"`;
  };
  const list = (open: string, close: string, size: number, one: () => string) =>
    `${open}${oneOf(spaces)}${Array.from({ length: size }, one).join(`${oneOf(spaces)},${oneOf(spaces)}`)}${close}`;
  const object = (levels: number): string =>
    list('{', '}', below(4), () => `${quoted(namePieces)}${oneOf(spaces)}:${oneOf(spaces)}${value(levels)}`);
  function value(levels: number): string {
    const kind = below(levels > 0 ? 8 : 5);
    if (kind < 2) return quoted(textPieces);
    if (kind === 2) return random() < 0.9 ? oneOf(numbers) : oneOf(wrongNumbers);
    if (kind < 5) return oneOf(['true', 'false', 'null', '7']);
    return kind === 5 ? list('[', ']', below(4), () => value(levels - 1)) : object(levels - 1);
  }
  return () => {
    const data = object(2);
    const space = () => oneOf(spaces);
    const bytes = Buffer.from(
      `${space()}{"data"${space()}:${space()}${data}${space()},"files":${object(0)}${space()}}`,
    );
    if (random() < 0.85) return { bytes, data };
    return { bytes: changed(bytes, below), data: undefined };
  };
}

/** Returns a copy of the bytes in which one byte is replaced or removed, or a part is repeated. */
function changed(bytes: Buffer, below: (limit: number) => number): Buffer {
  const place = below(bytes.length);
  const kind = below(3);
  if (kind === 0) return Buffer.concat([bytes.subarray(0, place), Buffer.of(below(256)), bytes.subarray(place + 1)]);
  if (kind === 1) return Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)]);
  return Buffer.concat([bytes.subarray(0, place), bytes.subarray(below(place + 1))]);
}

/** Returns a generator of random numbers from 0 to 1 (Mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
