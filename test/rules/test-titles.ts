// Parses a test file, and returns the titles of its tests with the titles of the `describe` blocks around them. The
// file does not run, so the titles of `each` tests keep their placeholders. Computed titles are left out.
import { parseSync } from '@swc/core';

/** Separates the file, the titles of its `describe` blocks and the test's title. */
export const separator = ' › ';

/** Returns the tests of a TypeScript source, each as `describe › … › title`. */
export function testTitles(source: string): string[] {
  const titles: string[] = [];
  walk(parseSync(source, { syntax: 'typescript', target: 'es2022' }), []);
  return titles;

  function walk(node: unknown, describes: readonly string[]): void {
    if (Array.isArray(node)) for (const item of node) walk(item, describes);
    else if (isNode(node)) {
      const declared = declarationIn(node);
      if (declared?.kind === 'test') titles.push([...describes, declared.title].join(separator));
      const inside = declared?.kind === 'describe' ? [...describes, declared.title] : describes;
      for (const child of Object.values(node)) walk(child, inside);
    }
  }
}

type Node = Record<string, unknown>;

const kinds: Record<string, 'test' | 'describe'> = {
  it: 'test',
  test: 'test',
  describe: 'describe',
  suite: 'describe',
};

/** Returns the kind and title of a call such as `it('…')` or `test.each(…)('…')`; undefined for any other node. */
function declarationIn(node: Node): { kind: 'test' | 'describe'; title: string } | undefined {
  if (node.type !== 'CallExpression') return undefined;
  const kind = kinds[rootOf(node.callee)];
  const [first] = node.arguments as { expression: Node }[];
  const title = first && textOf(first.expression);
  return kind && title !== undefined ? { kind, title } : undefined;
}

/** Returns the name at the beginning of a callee: `it` for `it.each(table)`. */
function rootOf(callee: unknown): string {
  if (!isNode(callee)) return '';
  if (callee.type === 'Identifier') return String(callee.value);
  if (callee.type === 'MemberExpression') return rootOf(callee.object);
  if (callee.type === 'CallExpression') return rootOf(callee.callee);
  if (callee.type === 'TaggedTemplateExpression') return rootOf(callee.tag);
  return '';
}

/** Returns the text of a literal; undefined for a computed text. */
function textOf(node: Node): string | undefined {
  if (node.type === 'StringLiteral') return String(node.value);
  if (node.type !== 'TemplateLiteral' || (node.expressions as unknown[]).length > 0) return undefined;
  return (node.quasis as { cooked: string }[])[0]?.cooked;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}
