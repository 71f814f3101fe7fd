import { createContext, Script } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cpuOf } from '../../../test/support/stopwatch.ts';
import { compilePattern, translatePattern } from './linear-pattern.ts';

const characters = ['a', 'b', 'Z', '0', '9', '_', '-', ' ', '\n', '\r', '\u2028', '\u00a0', '\ufeff', '\v', '\0'];
const text = fc.string({
  unit: fc.constantFrom(...characters, 'é', 'ſ', 'K', '😀', '٣', 'ß', '.', '/', '$', '^', ']', '\\', '\x85', '\b'),
  maxLength: 12,
});

const escapes = [
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '\\t',
  '\\n',
  '\\v',
  '\\r',
  '\\0',
  '\\x41',
  '\\u00e9',
  '\\cJ',
];
const atoms = [...escapes, '.', 'a', 'b', '0', ' ', 'é', '😀', '\\.', '\\/', '\\$', '\\u{1f600}', '\\ud83d\\ude00'];
const classes = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.array(fc.constantFrom(...atoms, 'a-z', '0-9', '\\-', '\\]', '[', '&&', '\\b', '\\p{L}', '\\P{Lu}', '😀-😃'), {
      maxLength: 4,
    }),
    fc.constantFrom('', '-'),
  )
  .map(([negation, items, dash]) => `[${negation}${items.join('')}${dash}]`);
const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
  term: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...atoms, '^', '$', '\\b', '\\B', '\\p{Lu}', '\\p{Script=Greek}'),
    classes,
    fc
      .tuple(
        fc.constantFrom('(', '(?:', '(?<n>'),
        tie('pattern'),
        fc.constantFrom('', '*', '+', '?', '{1,3}', '*?', '{2}'),
      )
      .map(([open, inner, quantifier]) => `${open}${inner})${quantifier}`),
    fc.tuple(fc.constantFrom(...atoms), fc.constantFrom('*', '+', '??', '{0,2}?', '{2,}')).map((both) => both.join('')),
  ),
  pattern: fc
    .array(tie('term'), { maxLength: 4 })
    .chain((terms) => fc.constantFrom('', '|').map((between) => terms.join(between))),
}));

function compiles(source: string, flags: string): boolean {
  try {
    return new RegExp(source, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

/**
 * Returns a pattern that has the same meaning but that V8 14.6 matches in a different way. V8 has bugs with characters
 * beyond the Basic Multilingual Plane: `/[^b]$/u` does not match `😀`, but `/[^b](?![^])/u` does. `/\B(?![^])/u`
 * matches `😀a`, but `/\B$/u` does not.
 */
function withoutDollar(source: string): string {
  return source.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\$/gsu, (token) => (token === '$' ? '(?![^])' : token));
}

const native = { source: '', texts: [] as string[] };
const nativeMatch = new Script(`{ const pattern = new RegExp(source, 'u'); texts.map((text) => pattern.test(text)); }`);
const nativeContext = createContext(native);

/**
 * Returns which texts the native engine matches. Returns undefined if the match takes longer than `timeout`
 * milliseconds. Generated patterns such as `((a*)*|b*)+` take exponential time, and the timeout of a test cannot
 * interrupt a computation.
 */
function matchNatively(source: string, texts: string[], timeout = 200): boolean[] | undefined {
  Object.assign(native, { source, texts });
  try {
    return nativeMatch.runInContext(nativeContext, { timeout });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  }
}

it('the comparison gives up a pattern that would take years', () => {
  // A busy machine may leave this process no processor for longer than the default timeout.
  expect(matchNatively('^(a|(a*)*)*b$', ['b', 'ab'], 60_000)).toEqual([true, true]);
  expect(matchNatively('^((a*)*)*b$', ['a'.repeat(40)])).toBeUndefined();
});

describe('a pattern in RE2', () => {
  it('matches exactly the texts that the native engine matches', () => {
    let translated = 0;
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 8, maxLength: 8 }), (source, texts) => {
        fc.pre(compiles(source, 'u'));
        const compiled = compilePattern(source, true);
        // A pattern that already runs in the native engine needs no comparison.
        if (compiled.engine === 'native') return;
        translated += 1;
        const [plain, other] = [source, withoutDollar(source)].map((each) => matchNatively(each, texts));
        fc.pre(plain !== undefined && other !== undefined);
        for (const [nth, one] of texts.entries())
          expect([plain?.[nth], other?.[nth]], `${source} with ${one}`).toContain(compiled.test(one));
      }),
      { numRuns: 3_000 },
    );
    expect(translated).toBeGreaterThan(2_000);
  });

  it('of the older syntax matches what the native engine matches in texts of the basic plane', () => {
    const older = fc
      .array(fc.constantFrom('\\_', '\\-', '\\@', 'a-', '[\\w\\_]', '[\\w-a]', '{', ']', '\\e', ...escapes), {
        maxLength: 4,
      })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(older, text, (source, one) => {
        fc.pre(compiles(source, '') && !compiles(source, 'u') && !/[\ud800-\udfff]/.test(one));
        expect([source, compilePattern(source, false).test(one)]).toEqual([source, new RegExp(source).test(one)]);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of the older syntax counts an emoji as two characters only if RE2 cannot express it', () => {
    const matches = (source: string) => compilePattern(source, false).test('😀');
    expect([matches('^(?:\\_|.)$'), matches('^(?!\\_).$'), matches('^(?!\\_)..$')]).toEqual([true, false, true]);
    expect(matches('^(?!_).$')).toBe(true);
  });

  it.each([['(?=a)b'], ['(?!a)b'], ['(?<=a)b'], ['(?<!a)b'], ['(a)\\1'], ['(?<n>a)\\k<n>'], ['a{1001}']])(
    'that RE2 cannot express runs in the native engine: %s',
    (source) => {
      expect(compilePattern(source, true).engine).toBe('native');
    },
  );

  it.each([['^(a+)+$'], ['^(a|a)*$'], ['^(.*)*$'], ['^(\\w+\\s?)*$'], ['(x+x+)+y'], ['^(([a-z])+.)+[A-Z]([a-z])+$']])(
    'that takes exponential time in the native engine is fast: %s',
    (source) => {
      const compiled = compilePattern(source, true);
      const long = `${'a'.repeat(20_000)}\n!`;
      expect(compiled.engine).toBe('re2');
      expect(cpuOf(() => compiled.test(long))).toBeLessThan(10_000);
    },
  );

  it('is a SyntaxError if it is malformed', () => {
    expect(() => compilePattern('(', false)).toThrow(SyntaxError);
    expect(() => compilePattern('\\_', true)).toThrow(SyntaxError);
    expect(translatePattern('\\_', false)).toBeDefined();
  });
});
