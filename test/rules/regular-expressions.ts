// Finds regular expressions that take more than linear time: one long text from a request or a tenant could make such
// an expression block the event loop for everybody. The library recheck proves that the other expressions are linear.
// The proof takes seconds for some expressions, so `npm run docs` stores the proved expressions in
// linear-expressions.json.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CallExpression, type NewExpression, parseSync, Visitor, type VisitorObject } from 'oxc-parser';
import { checkSync } from 'recheck';
import { codeEndings, listFiles, type SourceFile } from './source-files.ts';

/**
 * Expressions that take more than linear time, or that recheck cannot judge, with the reason why they do no harm. The
 * key is the file that uses them.
 */
export const harmless: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'reconciler/core-clients/cluster.ts': { '/[^a-z0-9]+$/': 'the text has at most 200 characters' },
  'reconciler/core-clients/held-clients.ts': {
    '/^-+|-+$/g': 'the text is the id of a client, which has at most 50 characters',
  },
  'src/forms/forms/form.ts': {
    '/:\\/\\/|\\bwww[.．。｡]|[\\p{L}\\p{N}-]{2,}[.．。｡]\\p{L}{2,}|[.．。｡]\\p{L}{2,}\\//iu':
      'the text has at most 100 characters',
  },
  'src/platform-server/config.ts': { '/^[^\\r\\n]*[^\\s<>@]+@[A-Za-z0-9.-]+>?$/': 'a setting of the operator' },
  'src/platform-server/reference/templates.ts': {
    '/\\s+(?:timeStyle|dateStyle|locale|timeZone)=(?:"[^"]*"|\'[^\']*\')/g':
      'only if the platform server behaves like the older platform, which is for tests',
    '/(\\{\\{[{&]?\\s*formatDate\\b)([^}]*)(\\}\\})/g':
      'only if the platform server behaves like the older platform, which is for tests',
  },
  'src/service/openapi/operation-id.ts': {
    '/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g': 'the texts are the paths of this product’s routes',
  },
  'src/service/operations/duration.ts': {
    '/([\\d.]+)([WDHMS])/g': 'the text is a valid duration, in which a unit follows each number',
  },
  'src/service/operations/error-description.ts': {
    '/[^\\s"\'<>:;,()]+@[^\\s"\'<>:;,()]+/g': 'the text has at most 2,000 characters',
    '/\\beyJ[\\w-]+\\.[\\w-]+\\.[\\w-]*/g': 'the text has at most 2,000 characters',
  },
  'src/service/operations/variable-warnings.ts': {
    '/_SERVICE_(?:HOST|PORT(?:_.*)?)$|_PORT_\\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/':
      'the names of environment variables',
  },
  'src/token-handler/pages/settings.ts': { '/^[^\\p{Cc}]*\\S[^\\p{Cc}]*$/u': 'a setting of the operator' },
  'src/token-handler/sessions/cookies.ts': { '/=+$/': 'the text is a signature of fixed length' },
  'src/token-handler/sign-in/failures.ts': {
    '/"nonce" .*claim missing$/': 'a message of openid-client, which contains only the name of the claim',
  },
};

/** Files whose expressions depend on texts that only a running process has, with the reason why they do no harm. */
export const harmlessBuilders: Readonly<Record<string, string>> = {
  'src/service/workers/linear-pattern.ts': 'decision 0033 says how patterns of data schemas are run',
  'src/token-handler/targets/untrusted-headers.ts': 'alternatives of letters, digits and hyphens, without repetition',
};

export interface UsedExpression {
  path: string;
  expression: string;
}

/** Returns the regular expressions in the code that runs in production. */
export function expressionsIn(root: string): UsedExpression[] {
  const found = builtExpressions().map(({ path, expression }) => ({ path, expression }));
  visitProduction(root, ({ path }) => ({
    Literal(node) {
      if ('regex' in node && node.regex) found.push({ path, expression: `/${node.regex.pattern}/${node.regex.flags}` });
    },
  }));
  return found;
}

/** Returns the regular expressions that the code builds from texts, with their places. */
export function builtExpressions(): (UsedExpression & { place: string })[] {
  const printer = fileURLToPath(import.meta.resolve('./print-built-expressions.ts'));
  return JSON.parse(execFileSync(process.execPath, [printer], { encoding: 'utf8' }));
}

/** Returns the places (file and line) where the code builds regular expressions from texts. */
export function buildersIn(root: string): { path: string; place: string }[] {
  const found: { path: string; place: string }[] = [];
  visitProduction(root, ({ path, text }) => {
    const add = ({ callee, start }: NewExpression | CallExpression) => {
      if (callee.type === 'Identifier' && callee.name === 'RegExp')
        found.push({ path, place: `${path}:${text.slice(0, start).split('\n').length}` });
    };
    return { NewExpression: add, CallExpression: add };
  });
  return found;
}

function visitProduction(root: string, visitorOf: (file: SourceFile) => VisitorObject): void {
  for (const file of listFiles(root, ['src', 'reconciler'], codeEndings))
    if (!file.path.includes('.test.')) new Visitor(visitorOf(file)).visit(parseSync(file.path, file.text).program);
}

/** Returns whether recheck proves that an expression takes linear time. */
export function isLinear(expression: string): boolean {
  const end = expression.lastIndexOf('/');
  // Replace the flags `d` and `v`, which recheck does not know. They do not change the time.
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

/** Returns the JSON text of the expressions that are proved linear. Checks only new expressions. */
export function provedExpressionsText(root: string): string {
  const proved = new Set(provedExpressions());
  const used = new Set(expressionsIn(root).map(({ expression }) => expression));
  const linear = [...used].sort().filter((expression) => proved.has(expression) || isLinear(expression));
  return `${JSON.stringify(linear, undefined, 2)}\n`;
}
