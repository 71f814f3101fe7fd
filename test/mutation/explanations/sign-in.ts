// The mutants that survive in the sign-in, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const signIn: readonly Explanation[] = [
  {
    file: 'src/token-handler/sign-in/failing-clients.ts',
    text: 'return times.length === failures && oldest !== undefined && clock().getTime() - oldest <= period;',
    changes: [['oldest !== undefined', 'true']],
    kind: 'equivalent',
    why: 'five failures have a first one; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/sign-in/id-token.ts',
    text: "const size = /[RPE]S(\\d+)$/.exec(alg)?.[1] ?? '512';",
    changes: [['/[RPE]S(\\d+)$/', '/[RPE]S(\\d+)/']],
    kind: 'equivalent',
    why: 'the names of the accepted algorithms end with the digits.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: "return /(?:^|\\/)(?:\\.|%2e){1,2}(?:\\/|$)/i.test(pathOf(text)) ? 'must not contain dot segments' : undefined;",
    changes: [['/(?:^|\\/)(?:\\.|%2e){1,2}(?:\\/|$)/i', '/(?:\\/)(?:\\.|%2e){1,2}(?:\\/|$)/i']],
    kind: 'equivalent',
    why: 'a path begins with a slash.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: 'return URL.canParse(text, base) && new URL(text, base).origin === base;',
    changes: [
      ['URL.canParse(text, base) && new URL(text, base).origin === base', 'true'],
      [
        'URL.canParse(text, base) && new URL(text, base).origin === base',
        'URL.canParse(text, base) || new URL(text, base).origin === base',
      ],
      ['new URL(text, base).origin === base', 'true'],
    ],
    kind: 'second barrier',
    why: 'the checks before leave no text that the URL parser reads as another origin; the parser has the last word.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: "return new URL(path ?? '/', site).href;",
    changes: [["'/'", '""']],
    kind: 'equivalent',
    why: 'a URL without a path has the path `/`.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: "const url = new URL(page ?? '/', site);",
    changes: [["'/'", '""']],
    kind: 'equivalent',
    why: 'a URL without a path has the path `/`.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: 'const [, authority] = absolutePattern.exec(text) ?? [];',
    changes: [['[]', '["Stryker was here"]']],
    kind: 'equivalent',
    why: 'a default for a text that did not match: it has no second part either.',
  },
  {
    file: 'src/token-handler/sign-in/sign-in.ts',
    text: "return absolutePattern.exec(url)?.[2] ?? '';",
    changes: [
      ['absolutePattern.exec(url)?.[2]', 'absolutePattern.exec(url)[2]'],
      ["''", '"Stryker was here!"'],
    ],
    kind: 'equivalent',
    why: 'only valid URLs get here, and a URL without a path has neither dot segments nor the ending of a callback.',
  },
];
