// Lists every action of the console: each event handler in its sources that a person can trigger. Uses the browser's
// coverage data to find out which actions ran.
import { readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { parseSource } from '../../web/source-maps.ts';

export interface ConsoleAction {
  /** File below web/console, line, and name of the event, such as `home.tsx:12 onClick`. */
  name: string;
  file: string;
  /**
   * The range from the event's name to the function's body. According to a source map, the function starts within this
   * range.
   */
  head: [from: number, to: number];
}

const sources = join(import.meta.dirname, '../../web/console');
/** Events that need no test, because no person causes them or because they change only the display. */
const passive = new Set(['onScroll', 'onDragOver']);

/**
 * Returns all actions of the console. Throws if a handler is not a function or the name of a function, because its
 * calls could not be counted.
 */
export function listConsoleActions(): ConsoleAction[] {
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx'));
  return files.sort().flatMap(actionsOf);
}

function actionsOf(file: string): ConsoleAction[] {
  const text = readFileSync(join(sources, file), 'utf8');
  const nodes = nodesOf(parseSource(file, text));
  const functions = new Map(nodes.flatMap(namedFunction));
  return nodes.flatMap((node): ConsoleAction[] => {
    const handler = handlerOf(node);
    if (!handler) return [];
    const line = text.slice(0, node.start).split('\n').length;
    const name = `${file}:${line} ${handler.event}`;
    const value = functionOf(handler.value, functions);
    if (value === undefined) return [];
    if (!isFunction(value)) throw new Error(`${name}: write a function, or the name of a function or property`);
    // According to a source map, a function without parameters starts at the name of its variable.
    const declared = nodes.find(({ type, init }) => type === 'VariableDeclarator' && init === value);
    const { start } = value === handler.value ? node : (declared ?? value);
    return [{ name, file, head: [start, isNode(value.body) ? value.body.start : value.end] }];
  });
}

interface Node {
  type: string;
  start: number;
  end: number;
  [member: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Returns the node and all nodes below it. */
function nodesOf(root: unknown): Node[] {
  if (Array.isArray(root)) return root.flatMap(nodesOf);
  if (!isNode(root)) return [];
  return [root, ...Object.values(root).flatMap((value) => (typeof value === 'object' ? nodesOf(value) : []))];
}

const isFunction = (value: unknown): value is Node =>
  isNode(value) && /^(?:ArrowFunctionExpression|FunctionExpression|FunctionDeclaration)$/.test(value.type);

function namedFunction(node: Node): [string, Node][] {
  const name = isNode(node.id) ? String(node.id.name) : '';
  if (node.type === 'FunctionDeclaration') return [[name, node]];
  return node.type === 'VariableDeclarator' && isFunction(node.init) ? [[name, node.init]] : [];
}

/** Finds a handler in an attribute `onClick={…}`, or in a member `onClick: …` of an object. */
function handlerOf(node: Node): { event: string; value: unknown } | undefined {
  const key = node.type === 'JSXAttribute' ? node.name : node.type === 'Property' ? node.key : undefined;
  const event = isNode(key) ? String(key.name) : '';
  if (!/^on[A-Z]/.test(event) || passive.has(event)) return undefined;
  const given = node.value;
  const value = isNode(given) && given.type === 'JSXExpressionContainer' ? given.expression : given;
  // A member without a function is not a handler, but for example a part of a destructuring pattern.
  return node.type === 'Property' && !isFunction(value) ? undefined : { event, value };
}

/**
 * Returns the function of a handler. Returns undefined if a component only passes on a handler that it got: this
 * handler is listed where it is defined.
 */
function functionOf(value: unknown, functions: Map<string, Node>): unknown {
  if (!isNode(value)) return value;
  // `change('name')` creates a handler. The function that it returns is the action.
  const named = value.type === 'CallExpression' ? value.callee : value;
  if (!isNode(named) || named.type !== 'Identifier') return value;
  const found = functions.get(String(named.name));
  return value.type === 'CallExpression' ? found?.body : found;
}

/** A browser's coverage report for the functions of one script, as in the Chrome DevTools Protocol. */
export interface ScriptCoverage {
  url: string;
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[];
}

/**
 * Remembers which functions of the built console ran. `folder` contains the console's scripts and their source maps.
 */
export class ConsoleCoverage {
  readonly #folder: string;
  /** Ranges of the functions that ran, as `start end`, keyed by the script's file name. */
  readonly #ran = new Map<string, Set<string>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(scripts: readonly ScriptCoverage[]): void {
    for (const { url, functions } of scripts) {
      const [, name] = /\/console\/assets\/([^/]+\.js)$/.exec(url) ?? [];
      if (name === undefined) continue;
      const ran = this.#ran.get(name) ?? new Set();
      this.#ran.set(name, ran);
      for (const { ranges: [whole] = [] } of functions)
        if (whole && whole.count > 0) ran.add(`${whole.startOffset} ${whole.endOffset}`);
    }
  }

  /** Returns the names of the actions that no page has run. */
  missing(actions: readonly ConsoleAction[] = listConsoleActions()): string[] {
    const seen = [...this.#ran].flatMap(([script, ran]) => this.#originals(script, ran));
    const isSeen = ({ file, head: [from, to] }: ConsoleAction) =>
      seen.some((one) => one.file === file && from <= one.offset && one.offset <= to);
    return actions.filter((action) => !isSeen(action)).map(({ name }) => name);
  }

  /** Returns the start positions, in the sources, of the functions that ran. */
  #originals(script: string, ran: ReadonlySet<string>): { file: string; offset: number }[] {
    const text = readFileSync(join(this.#folder, script), 'utf8');
    const map = new SourceMap(JSON.parse(readFileSync(join(this.#folder, `${script}.map`), 'utf8')));
    const functions = nodesOf(parseSource(script, text)).filter(isFunction);
    const isRun = ({ start, end }: Node) => ran.has(`${start} ${end}`);
    return functions.filter(isRun).flatMap(({ start }) => {
      const before = text.slice(0, start).split('\n');
      const entry = map.findEntry(before.length - 1, before.at(-1)?.length ?? 0);
      if (!('originalSource' in entry)) return [];
      const [, file] = /\/web\/console\/(.+)$/.exec(entry.originalSource) ?? [];
      return file ? [{ file, offset: offsetOf(file, entry.originalLine, entry.originalColumn) }] : [];
    });
  }
}

/** Returns the offset of a position in a source file. `line` and `column` are counted from 0. */
function offsetOf(file: string, line: number, column: number): number {
  const before = readFileSync(join(sources, file), 'utf8').split('\n').slice(0, line);
  return before.reduce((sum, { length }) => sum + length + 1, column);
}
