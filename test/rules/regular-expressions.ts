// Finds the regular expressions whose time grows faster than the length of the text: one long text from a request or a
// tenant could then block the event loop for everybody. recheck proves the others linear. It needs seconds for some, so
// `npm run docs` writes those that it has proved into linear-expressions.json.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { checkSync } from 'recheck';
import { codeEndings, listFiles } from './source-files.ts';

/** Expressions that take more than linear time, or that recheck cannot judge, and why they do no harm. */
export const harmless: Readonly<Record<string, string>> = {
  '/=+$/': 'the text is a signature of fixed length',
  '/"(?:nonce|auth_time)" .*claim missing$/': 'a message of openid-client, which contains only the name of the claim',
  '/^[^\\p{Cc}]*\\S[^\\p{Cc}]*$/u': 'a setting of the operator',
  '/^[^\\r\\n]*[^\\s<>@]+@[A-Za-z0-9.-]+>?$/': 'a setting of the operator',
  '/-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g': 'a file of the operator',
  '/_SERVICE_(?:HOST|PORT(?:_.*)?)$|_PORT_\\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/':
    'the names of environment variables',
  '/([\\d.]+)([WDHMS])/g': 'the text is a valid duration, in which a unit follows each number',
  '/[^\\s"\'<>:;,()]+@[^\\s"\'<>:;,()]+/g': 'the text has at most 2,000 characters',
  '/\\beyJ[\\w-]+\\.[\\w-]+\\.[\\w-]*/g': 'the text has at most 2,000 characters',
  '/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g': 'the texts are the paths of this product’s routes',
  '/\\s+(?:timeStyle|dateStyle|locale|timeZone)=(?:"[^"]*"|\'[^\']*\')/g':
    'only if the platform server behaves like the older platform, which is for tests',
  '/(\\{\\{[{&]?\\s*formatDate\\b)([^}]*)(\\}\\})/g':
    'only if the platform server behaves like the older platform, which is for tests',
  "/^(?:Parse error on line \\d+|Missing helper: .*|The partial .*|.* doesn't match .*)/":
    'runs in a limited worker process',
  '/<a\\b[^>]*?\\bhref="([^"]*)"[^>]*>([\\s\\S]*?)<\\/a>/gi': 'runs in a limited worker process',
  '/<\\/?[a-z][^>]*>/gi': 'runs in a limited worker process',
  '/:\\/\\/|\\bwww[.．。｡]|[\\p{L}\\p{N}-]{2,}[.．。｡]\\p{L}{2,}|[.．。｡]\\p{L}{2,}\\//iu':
    'the text has at most 100 characters',
  '/[^a-z0-9]+$/': 'the text has at most 200 characters',
  '/^-+|-+$/g': 'the text is the id of a client, which has at most 50 characters',
};

/** Returns the regular expressions in the code that runs in production, sorted. */
export function expressionsIn(root: string): string[] {
  const found = new Set<string>();
  const visitor = new Visitor({
    Literal(node) {
      if ('regex' in node && node.regex) found.add(`/${node.regex.pattern}/${node.regex.flags}`);
    },
  });
  for (const { path, text } of listFiles(root, ['src', 'reconciler'], codeEndings))
    if (!path.includes('.test.')) visitor.visit(parseSync(path, text).program);
  return [...found].sort();
}

/** Tells whether recheck proves that the time of an expression is linear. */
export function isLinear(expression: string): boolean {
  const end = expression.lastIndexOf('/');
  // recheck does not know the flags `d` and `v`. Neither changes the time.
  const flags = expression
    .slice(end + 1)
    .replace('d', '')
    .replace('v', 'u');
  return checkSync(expression.slice(1, end), flags, { timeout: 30_000 }).status === 'safe';
}

const provedFile = join(import.meta.dirname, 'linear-expressions.json');

/** Returns the expressions that were proved linear. */
export function provedExpressions(): string[] {
  return JSON.parse(readFileSync(provedFile, 'utf8'));
}

/** Returns the JSON text of the expressions that are proved linear. Checks only those that are new. */
export function provedExpressionsText(root: string): string {
  const proved = new Set(provedExpressions());
  const linear = expressionsIn(root).filter((expression) => proved.has(expression) || isLinear(expression));
  return `${JSON.stringify(linear, undefined, 2)}\n`;
}
