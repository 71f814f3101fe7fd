// The mutants that survive in the proxy, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const targets: readonly Explanation[] = [
  {
    file: 'src/token-handler/targets/path.ts',
    text: "export function isTargetRequest({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a fallback for the type checker: the value is always present.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: "export function isForTargets({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a fallback for the type checker: the value is always present.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: "export function targetPatternOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a fallback for the type checker: the value is always present.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: ".replace(asciiLookalike, (character) => asciiLookalikes[character] ?? '');",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a fallback for the type checker: the value is always present.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: "? String.fromCharCode(Number.parseInt(unit ?? '', 16)).normalize('NFKC')",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a fallback for the type checker: the value is always present.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: 'const end = mark < 0 ? url.length : mark;',
    changes: [['mark < 0', 'mark <= 0']],
    kind: 'equivalent',
    why: 'the search begins after the prefix, so the position is never 0.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: 'const idEnd = slash < 0 || slash > end ? end : slash;',
    changes: [['slash < 0', 'slash <= 0']],
    kind: 'equivalent',
    why: 'the search begins after the prefix, so the position is never 0.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: 'const idEnd = slash < 0 || slash > end ? end : slash;',
    changes: [['slash > end', 'slash >= end']],
    kind: 'equivalent',
    why: 'a slash is never at the position of the question mark or at the end.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: "const targetId = written.includes('%') ? decodeURIComponent(written) : written;",
    changes: [["'%'", '""']],
    kind: 'performance only',
    why: 'decoding a text without a percent sign returns the text.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: 'if (/^[\\x20-\\x7e]*$/.test(text)) return text;',
    changes: [
      ['/^[\\x20-\\x7e]*$/.test(text)', 'false'],
      ['/^[\\x20-\\x7e]*$/', '/^[^\\x20-\\x7e]*$/'],
      ['/^[\\x20-\\x7e]*$/', '/^[\\x20-\\x7e]$/'],
    ],
    kind: 'performance only',
    why: 'a shortcut: folding does not change printable ASCII, and a path always begins with a slash.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: 'return text.split(character).length - 1;',
    changes: [['text.split(character).length - 1', 'text.split(character).length + 1']],
    kind: 'equivalent',
    why: 'counts are only compared with each other.',
  },
  {
    file: 'src/token-handler/targets/path.ts',
    text: "const plainPath = /^(?:\\/(?!\\.)[\\w.~!$&'()*+,=:@-]*)*$/;",
    changes: [
      ["/^(?:\\/(?!\\.)[\\w.~!$&'()*+,=:@-]*)*$/", "/^(?:\\/(?!\\.)[\\w.~!$&'()*+,=:@-]*)$/"],
      ["/^(?:\\/(?!\\.)[\\w.~!$&'()*+,=:@-]*)*$/", "/^(?:\\/(?!\\.)[\\w.~!$&'()*+,=:@-])*$/"],
    ],
    kind: 'performance only',
    why: 'a shortcut: paths that it misses get the complete check, which accepts them.',
  },
];
