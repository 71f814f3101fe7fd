// Parses JSON (RFC 8259), and records the offset of each value, so that a problem with a JSON pointer can be shown at
// its position. `JSON.parse` reports the position of an error only in some browsers, and never the position of a value.

export interface ParsedJson {
  value?: unknown;
  /** Offset of each value in the text, keyed by the value's JSON pointer (RFC 6901). */
  places: ReadonlyMap<string, number>;
  fault?: { offset: number; detail: string };
}

class Fault extends Error {
  readonly offset: number;
  constructor(offset: number, detail: string) {
    super(detail);
    this.offset = offset;
  }
}

const deepest = 200;

export function parseJson(text: string): ParsedJson {
  const reader = new Reader(text);
  try {
    reader.document();
    return { value: JSON.parse(text), places: reader.places };
  } catch (error) {
    if (error instanceof Fault)
      return { places: reader.places, fault: { offset: error.offset, detail: error.message } };
    return { places: reader.places, fault: { offset: 0, detail: 'This is not valid JSON' } };
  }
}

class Reader {
  readonly places = new Map<string, number>();
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#value('', 0);
    this.#space();
    if (this.#at < this.#text.length) throw new Fault(this.#at, 'There is text after the end of the value');
  }

  #space(): void {
    while (/[ \t\n\r]/.test(this.#text.charAt(this.#at))) this.#at += 1;
  }

  #value(pointer: string, depth: number): void {
    this.#space();
    if (depth > deepest) throw new Fault(this.#at, `Values are nested more than ${deepest} deep`);
    this.places.set(pointer, this.#at);
    const first = this.#text.charAt(this.#at);
    if (first === '{') this.#members(pointer, depth);
    else if (first === '[') this.#items(pointer, depth);
    else if (first === '"') this.#string();
    else this.#literal();
  }

  #literal(): void {
    this.#match(/(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/y, 'A value is missing or malformed');
  }

  #members(pointer: string, depth: number): void {
    const names = new Set<string>();
    this.#list('}', 'member', () => {
      const start = this.#at;
      if (this.#text.charAt(start) !== '"') throw new Fault(start, 'A name in double quotes is missing');
      const name = this.#string();
      if (names.has(name)) throw new Fault(start, `The name ${name} appears twice`);
      names.add(name);
      this.#space();
      if (this.#text.charAt(this.#at) !== ':') throw new Fault(this.#at, 'A colon is missing');
      this.#at += 1;
      this.#value(`${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, depth + 1);
    });
  }

  #items(pointer: string, depth: number): void {
    let index = 0;
    this.#list(']', 'item', () => {
      this.#value(`${pointer}/${index}`, depth + 1);
      index += 1;
    });
  }

  #list(end: string, what: string, read: () => void): void {
    this.#at += 1;
    this.#space();
    if (this.#text.charAt(this.#at) === end) {
      this.#at += 1;
      return;
    }
    for (;;) {
      this.#space();
      read();
      this.#space();
      const next = this.#text.charAt(this.#at);
      if (next !== ',' && next !== end) throw new Fault(this.#at, `A comma or ${end} is missing after the ${what}`);
      this.#at += 1;
      if (next === end) return;
    }
  }

  #string(): string {
    const start = this.#at;
    this.#match(
      /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy,
      'A string is not closed or has an invalid escape',
    );
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #match(pattern: RegExp, detail: string): void {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) throw new Fault(this.#at, detail);
    this.#at = pattern.lastIndex;
  }
}

/** Returns the offset of the value, or of the nearest value around it if the problem is a missing member. */
export function placeOf({ places }: ParsedJson, pointer: string): number {
  for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const offset = places.get(at);
    if (offset !== undefined) return offset;
    if (at === '') return 0;
  }
}

/** Returns the line of an offset, counted from 1. */
export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}
