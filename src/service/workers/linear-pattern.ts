// Compiles the regular expressions of JSON Schemas for an engine that cannot backtrack (RE2), so that even a hostile
// pattern takes time proportional to the text. Translates ECMAScript syntax into RE2 syntax with the same meaning. A
// pattern that RE2 cannot express (look-around, back references) runs in the native engine. Call this code only in a
// limited worker.
import { RE2JS } from 're2js';

export interface Pattern {
  test(text: string): boolean;
  /** Returns the source and flags, as RegExp does. */
  toString(): string;
  /** The engine that runs the pattern. */
  engine: 're2' | 'native';
}

/**
 * Compiles a pattern. If `isStrict` is true, accepts only patterns that are valid with the `u` flag. Otherwise also
 * accepts the older syntax (ECMA-262 Annex B), such as `\_`. RE2 matches older syntax by code points too, as JSON
 * Schema requires. The native engine matches it by UTF-16 code units: in `(?!\_).`, the dot matches half of an emoji.
 * Older patterns are not rewritten for the `u` flag, because the flag can change their meaning: without it, `\u{2}`
 * matches `uu`, and `\ud83d` also matches half of an emoji. Throws SyntaxError.
 */
export function compilePattern(source: string, isStrict: boolean): Pattern {
  const native = compileNative(source, isStrict);
  const linear = compileLinear(source, native.unicode);
  const name = native.toString();
  return {
    test: linear ? (text) => linear.test(text) : (text) => native.test(text),
    toString: () => name,
    engine: linear ? 're2' : 'native',
  };
}

/** Returns a value for Ajv's option `code.regExp`. */
export function schemaPatterns(isStrict: boolean): ((source: string) => Pattern) & { code: string } {
  // Ajv uses `code` only for schemas that are written to a file.
  return Object.assign((source: string) => compilePattern(source, isStrict), { code: '' });
}

function compileNative(source: string, isStrict: boolean): RegExp {
  try {
    return new RegExp(source, 'u');
  } catch (error) {
    if (isStrict) throw error;
    return new RegExp(source);
  }
}

function compileLinear(source: string, isUnicode: boolean): RE2JS | undefined {
  const translated = translatePattern(source, isUnicode);
  if (translated === undefined) return undefined;
  try {
    return RE2JS.compile(translated);
  } catch {
    // RE2 rejects repetitions above 1,000 and programs that would be too large.
    return undefined;
  }
}

/** First and last code point of a range. */
type Range = readonly [number, number];
type CodePoints = readonly Range[];

const lastCodePoint = 0x10ffff;
const digits: CodePoints = [[0x30, 0x39]];
const wordCharacters: CodePoints = [...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
// Line terminators (ECMA-262 section 12.3). The dot matches every other character.
const lineEnds: CodePoints = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
/**
 * Code points of the properties in `\p{…}`, keyed by name, as the native engine defines them. RE2 implements another
 * version of Unicode.
 */
const properties = new Map<string, CodePoints>();

/**
 * Translates the pattern into RE2's syntax. Returns undefined if RE2 has no equivalent. `source` must compile natively.
 * Every set of characters becomes ranges of code points, because a name or an escape could have a different meaning in
 * RE2.
 */
export function translatePattern(source: string, isUnicode: boolean): string | undefined {
  let translated = '';
  for (let at = 0; at < source.length; ) {
    const fragment = readOperator(source, at) ?? readSet(source, at, isUnicode);
    if (!fragment) return undefined;
    translated += fragment.text;
    at = fragment.end;
  }
  return translated;
}

interface Fragment {
  text: string;
  end: number;
}

const operator =
  /(?<start>\^)|(?<stop>\$)|(?<boundary>\\[bB])|(?<quantifier>[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??|(?<group>\((?:\?:|\?<[A-Za-z_$][\w$]*>|(?!\?)))|(?<syntax>[|)])/y;

function readOperator(source: string, at: number): Fragment | undefined {
  operator.lastIndex = at;
  const found = operator.exec(source)?.groups;
  if (!found) return undefined;
  const { start, stop, boundary, quantifier, group, syntax } = found;
  // Laziness and capturing do not change whether a text matches.
  const text = (start && '\\A') ?? (stop && '\\z') ?? boundary ?? quantifier ?? (group && '(?:') ?? syntax ?? '';
  return { text, end: operator.lastIndex };
}

/** Reads a dot, a class, an escape or a literal. */
function readSet(source: string, at: number, isUnicode: boolean): Fragment | undefined {
  if (source[at] === '.') return { text: writeClass(complement(lineEnds)), end: at + 1 };
  if (source[at] === '[') return readClass(source, at + 1, isUnicode);
  const atom = readAtom(source, at, isUnicode, false);
  return atom && { text: writeClass(atom.set), end: atom.end };
}

interface Atom {
  set: CodePoints;
  end: number;
}

/**
 * Reads a class. `start` is the position after the opening bracket; the returned `end` is the position after the
 * closing one.
 */
function readClass(source: string, start: number, isUnicode: boolean): Fragment | undefined {
  const isNegated = source[start] === '^';
  const set: Range[] = [];
  let at = isNegated ? start + 1 : start;
  while (source[at] !== ']') {
    const first = readAtom(source, at, isUnicode, true);
    if (!first) return undefined;
    at = first.end;
    if (source[at] !== '-' || source[at + 1] === ']') set.push(...first.set);
    else {
      const last = readAtom(source, at + 1, isUnicode, true);
      const from = only(first.set);
      const to = last && only(last.set);
      // A range with a set as an end, such as `[\w-x]`, is valid only in the syntax of Annex B. The native engine runs
      // a pattern with such a range.
      if (from === undefined || to === undefined) return undefined;
      set.push([from, to]);
      at = last?.end ?? at;
    }
  }
  return { text: writeClass(isNegated ? complement(set) : set), end: at + 1 };
}

function only(set: CodePoints): number | undefined {
  const [range] = set;
  return set.length === 1 && range && range[0] === range[1] ? range[0] : undefined;
}

const escapeSyntax =
  /\\(?:(?<letter>[dDwWsS])|(?<property>[pP]\{[\w=]+\})|(?<control>[tnvfr]|0(?!\d)|b)|u\{(?<braced>[0-9a-fA-F]+)\}|u(?<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?<low>[dD][c-fC-F][0-9a-fA-F]{2})|u(?<four>[0-9a-fA-F]{4})|x(?<two>[0-9a-fA-F]{2})|c(?<caret>[A-Za-z])|(?<itself>[^A-Za-z0-9]))/uy;
const controls: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, '0': 0, b: 8 };

function readAtom(source: string, at: number, isUnicode: boolean, inClass: boolean): Atom | undefined {
  if (source[at] === '\\') return readEscape(source, at, isUnicode);
  const point = source.codePointAt(at);
  if (point === undefined || isSurrogate(point)) return undefined;
  const character = String.fromCodePoint(point);
  // Unescaped brackets and braces are allowed only in the older syntax.
  if (!inClass && '^$.*+?()[]{}|'.includes(character)) return undefined;
  return { set: [[point, point]], end: at + character.length };
}

function readEscape(source: string, at: number, isUnicode: boolean): Atom | undefined {
  escapeSyntax.lastIndex = at;
  const found = escapeSyntax.exec(source)?.groups;
  if (!found) return undefined;
  const set = setOfEscape(found, isUnicode);
  return set && { set, end: escapeSyntax.lastIndex };
}

function setOfEscape(found: Record<string, string | undefined>, isUnicode: boolean): CodePoints | undefined {
  const { letter, property, control, braced, high, low, four, two, caret, itself } = found;
  if (letter !== undefined) return setOfLetter(letter);
  if ((property ?? braced ?? high) !== undefined && !isUnicode) return undefined;
  if (property !== undefined) return setOfProperty(property);
  const hex = braced ?? four ?? two;
  let point = hex === undefined ? undefined : Number.parseInt(hex, 16);
  if (control !== undefined) point = controls[control];
  if (caret !== undefined) point = (caret.codePointAt(0) ?? 0) % 32;
  if (itself !== undefined) point = itself.codePointAt(0);
  if (high !== undefined && low !== undefined)
    point = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0);
  return point === undefined || isSurrogate(point) ? undefined : [[point, point]];
}

function setOfLetter(letter: string): CodePoints {
  const lower = letter.toLowerCase();
  const set = lower === 'd' ? digits : lower === 'w' ? wordCharacters : setOfProperty('s');
  return lower === letter ? set : complement(set);
}

/**
 * Returns the code points that have the property. Tests each code point in the native engine, which takes about 50 ms
 * for each property.
 */
function setOfProperty(name: string): CodePoints {
  const known = properties.get(name);
  if (known) return known;
  const isMember = new RegExp(`^\\${name}$`, 'u');
  const ranges: [number, number][] = [];
  for (let point = 0; point <= lastCodePoint; point += 1) {
    if (!isMember.test(String.fromCodePoint(point))) continue;
    const last = ranges.at(-1);
    if (last?.[1] === point - 1) last[1] = point;
    else ranges.push([point, point]);
  }
  properties.set(name, ranges);
  return ranges;
}

function complement(set: CodePoints): CodePoints {
  const ranges: Range[] = [];
  let next = 0;
  for (const [from, to] of set.toSorted((one, other) => one[0] - other[0])) {
    if (from > next) ranges.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= lastCodePoint) ranges.push([next, lastCodePoint]);
  return ranges;
}

function writeClass(set: CodePoints): string {
  // RE2 has no syntax for an empty class, so this class excludes all code points.
  if (set.length === 0) return `[^\\x{0}-\\x{${lastCodePoint.toString(16)}}]`;
  return `[${set.map(([from, to]) => `\\x{${from.toString(16)}}-\\x{${to.toString(16)}}`).join('')}]`;
}

function isSurrogate(point: number): boolean {
  return point >= 0xd800 && point <= 0xdfff;
}
