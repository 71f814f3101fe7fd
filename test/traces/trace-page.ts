// Reads and writes the section "Traces" of docs/ARCHITECTURE.md, which lists the modules that take part in a request.

/** A part of the section, with its own heading. */
export interface Trace {
  /** The heading. */
  name: string;
  /** Paths relative to the repository. */
  modules: readonly string[];
}

export interface ModuleGroups {
  /** Modules of the processes themselves, which a reader who follows the request should read. */
  own: string[];
  /** Modules of src/service/http, which are the same for every request. */
  http: string[];
  /** Modules of src/platform and of the rest of src/service. */
  shared: string[];
}

const isHttp = (path: string) => path.startsWith('src/service/http/');
const isShared = (path: string) => !isHttp(path) && /^src\/(?:service|platform)\//.test(path);

export function groupsOf(modules: readonly string[]): ModuleGroups {
  return {
    own: modules.filter((path) => !isHttp(path) && !isShared(path)),
    http: modules.filter(isHttp),
    shared: modules.filter(isShared),
  };
}

/**
 * Returns the text below a heading of the third level, up to the next heading; undefined if the heading does not exist.
 */
function textOf(page: string, name: string): string | undefined {
  const [, text] = page.split(`\n### ${name}\n`);
  return text?.split(/\n##/)[0];
}

/** Returns the modules that the page lists for a trace, in the page's order. */
export function documentedModules(page: string, name: string): string[] {
  return [...(textOf(page, name) ?? '').matchAll(/`((?:src|reconciler)\/[\w/.-]+\.ts)`/g)].map(([, path = '']) => path);
}

/**
 * Returns the page with the modules of a trace replaced. Modules that the page already lists keep their descriptions
 * and their order.
 */
export function withTrace(page: string, { name, modules }: Trace): string {
  const text = textOf(page, name);
  if (text === undefined) throw new Error(`The page has no heading “### ${name}”`);
  const introduction = text.split('\n| module |')[0]?.split('\nHTTP:')[0]?.trimEnd();
  return page.replace(text, () => `${introduction}\n\n${moduleText(text, modules)}\n`);
}

function moduleText(before: string, modules: readonly string[]): string {
  const known = new Map(
    [...before.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(([, path = '', does = '']) => [path, does]),
  );
  const order = [...known.keys()];
  const rank = (path: string) => (order.includes(path) ? order.indexOf(path) : order.length);
  const { own, http, shared } = groupsOf(modules);
  const rows = own
    .toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((path) => `| \`${path}\` | ${known.get(path) ?? ''} |`);
  const table = ['| module | what it does |', '| --- | --- |', ...rows].join('\n');
  return [table, ...list('HTTP', http), ...list('Shared', shared)].join('\n\n');
}

function list(title: string, paths: readonly string[]): string[] {
  return paths.length === 0 ? [] : [`${title}: ${paths.map((path) => `\`${path}\``).join(', ')}.`];
}
