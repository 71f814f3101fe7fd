// Rules about names and contents of source files that the linter cannot check. Most rules read files line by line;
// import-rules.ts checks imports.
import { parseSync, Visitor } from 'oxc-parser';
import { listFiles, type SourceFile, sourceFolders } from './source-files.ts';

/** One violation of a rule. */
export interface CodeFinding {
  rule: string;
  path: string;
  /** Number of the line, beginning with 1; absent if the finding is about the whole file. */
  line?: number;
  detail: string;
}

interface CodeRule {
  name: string;
  applies(path: string): boolean;
  check(file: SourceFile): Omit<CodeFinding, 'rule' | 'path'>[];
}

const isTest = (path: string) => path.startsWith('test/') || path.endsWith('.test.ts');
const isProduction = (path: string) => !isTest(path);
const isScript = (path: string) => /\.tsx?$/.test(path);
const everywhere = () => true;

// True for a folder's noun file, which has the folder's name in the singular, such as forms/form.ts or
// sign-in/sign-in.ts.
function isNoun(path: string): boolean {
  const [, folder, name] = /^src\/(?:forms|token-handler|platform-server)\/([^/]+)\/([^/]+)\.ts$/.exec(path) ?? [];
  if (folder === undefined || name === undefined) return false;
  if (!folder.endsWith('s')) return name === folder;
  return [`${name}s`, `${name}es`, name.replace(/y$/, 'ies')].includes(folder) && name !== folder;
}

/** Returns a rule that reports each matching line of code and, if `comments` is set, of comments. */
function refuse(
  name: string,
  pattern: RegExp,
  options: { applies?: (path: string) => boolean; comments?: boolean } = {},
): CodeRule {
  return {
    name,
    applies: options.applies ?? everywhere,
    check: ({ text }) =>
      text.split('\n').flatMap((content, index) => {
        const isComment = /^\s*(?:\/\/|\/\*|\*|--)/.test(content);
        if (isComment && options.comments !== true) return [];
        const found = pattern.exec(content);
        return found === null ? [] : [{ line: index + 1, detail: found[0].trim() }];
      }),
  };
}

function atMostLines(name: string, limit: number, applies: (path: string) => boolean): CodeRule {
  return {
    name,
    applies,
    check: ({ text }) => {
      const lines = text.trimEnd().split('\n').length;
      return lines > limit ? [{ detail: `${lines} lines, at most ${limit}` }] : [];
    },
  };
}

const vagueName: CodeRule = {
  name: 'names-say-what-is-inside',
  applies: everywhere,
  check: ({ path }) => {
    const words = path.split(/[/.-]/);
    const vague = words.filter((word) => /^(?:utils?|helpers?|commons?|managers?|misc|lib)$/.test(word));
    return vague.map((word) => ({ detail: `“${word}” says nothing` }));
  },
};

const opensWithComment: CodeRule = {
  name: 'files-open-with-a-comment',
  applies: (path) => isScript(path) && !path.endsWith('.test.ts'),
  check: ({ text }) =>
    /^(?:\/\/ \S|\/\*\*? ?\S|\/\*\*?\n \* \S)/.test(text)
      ? []
      : [{ line: 1, detail: 'no comment on what the file does' }],
};

// TypeScript does not look for unknown members in a literal that is spread. A misspelt optional member would compile.
const plainLiterals: CodeRule = {
  name: 'literals-list-their-members',
  applies: (path) => isScript(path) && isProduction(path),
  check: ({ path, text }) => {
    const starts: number[] = [];
    const visitor = new Visitor({
      ObjectExpression({ start, properties }) {
        const isSpread = (each: (typeof properties)[number]) =>
          each.type === 'SpreadElement' && each.argument.type === 'ObjectExpression';
        if (properties.length > 0 && properties.every(isSpread)) starts.push(start);
      },
    });
    visitor.visit(parseSync(path, text).program);
    return starts.map((start) => ({
      line: text.slice(0, start).split('\n').length,
      detail: 'write the members without a spread',
    }));
  },
};

// The patterns are written so that they do not match themselves.
const skip =
  /\b(?:describe|it|test|suite|bench)(?:\.\w+)*\.(?:skip|only|todo|fails|skipIf|runIf)\b|\b(?:skip|only|todo|fails): true\b|\.skip\(/;
const silence =
  /@ts-(?:[i]gnore|[e]xpect-error|[n]ocheck)|\b(?:biome|prettier|v8|c8|istanbul)[- ][i]gnore\b|\b(?:eslint|oxlint)-[d]isable/;
const input = /\bprocess\.|\bperformance\.|\bMath\.random\(|\bconsole\.|\bset(?:Timeout|Interval|Immediate)\(/;
// `now()` counts only on a line with a word in capitals, which is probably SQL. In other code, it may be any function.
const time =
  /\bDate\.now\(|\bnew Date\(\)|\b[A-Z]{2,}\b.*(?<![.\w])now\(\)|\b(?:current|clock|statement|transaction)_timestamp\b|\bCURRENT_TIMESTAMP\b/;

// Files that may read the time: the clock itself, its comparison with the database's clock, and files with statements
// on graphile-worker's tables, because that library uses the database's clock.
const clocks = [
  'src/service/clock.ts',
  'src/service/postgres/clock-offset.ts',
  'src/platform-server/notifications/deliveries-store.ts',
  'src/platform-server/worker.ts',
  // This module runs in a browser, and the tests replace the browser's clock.
  'web/token-handler-client/token-handler-client.ts',
];

const sqlPattern = /\bregexp_\w+\(|\blike_regex\b|\bSIMILAR TO\b|\bI?LIKE\b|(?<![\w.])substring\(|\s!?~{1,2}\*?\s+['$]/;

/** The pattern has a fixed length, and the text is the id of a tenant. */
const harmlessPatterns = 'src/platform-server/migrations/001.do.platform.sql';

const rules: CodeRule[] = [
  atMostLines('files-stay-short', 250, (path) => isScript(path) && isProduction(path)),
  atMostLines('mains-stay-tiny', 50, (path) => isProduction(path) && path.endsWith('/main.ts')),
  opensWithComment,
  plainLiterals,
  vagueName,
  refuse('exports-have-names', /^export default\b|^export \{.*\bas default\b/),
  refuse('tests-run', skip, { applies: isTest }),
  // These functions give up after a second, which is too short on a busy machine. Use `expect.poll`, which has the
  // timeout of vitest.config.ts.
  refuse('waits-are-patient', /\bvi\.waitFor\(|\bvi\.waitUntil\(/, { applies: isTest }),
  // Node's own `resetAndDestroy` may leave the connection open; see src/service/http/reset-socket.ts.
  refuse('connections-are-reset-in-one-place', /\.resetAndDestroy\(/, {
    applies: (path) => isProduction(path) && !path.endsWith('/reset-socket.ts'),
  }),
  refuse('comments-fit-the-line', /^(?=\s*(?:\/\/|\/?\*)).{121}/, { applies: isScript, comments: true }),
  refuse('nothing-is-left-for-later', /\b(?:TO[D]O|FIX[M]E|X[X]X|HAC[K])\b/, { comments: true }),
  refuse('checkers-are-not-silenced', silence, { comments: true }),
  refuse('nouns-have-no-clock-and-no-environment', input, { applies: isNoun }),
  refuse('time-is-injected', time, {
    applies: (path) => isProduction(path) && !path.startsWith('dev/') && !clocks.includes(path),
  }),
  // Postgres may need hours to match one hostile text, also with bounded repetitions, and regular-expressions.ts cannot
  // check expressions in SQL. Functions such as `strpos`, `split_part` and `translate` take linear time.
  refuse('sql-has-no-patterns', sqlPattern, {
    applies: (path) => isProduction(path) && /^(?:src|reconciler)\//.test(path) && path !== harmlessPatterns,
  }),
];

/** The names of all code rules; each has a fixture of the same name. */
export const codeRuleNames: string[] = rules.map(({ name }) => name);

/** Returns every violation of a code rule in the source folders. */
export function findCodeProblems(root: string): CodeFinding[] {
  const files = ['.ts', '.tsx', '.sql'].flatMap((ending) => listFiles(root, sourceFolders, ending));
  return files.flatMap((file) =>
    rules
      .filter((rule) => rule.applies(file.path))
      .flatMap((rule) => rule.check(file).map((finding) => ({ rule: rule.name, path: file.path, ...finding }))),
  );
}
