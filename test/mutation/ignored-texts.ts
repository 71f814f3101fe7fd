// A plugin that tells Stryker not to mutate texts that only people read: messages of errors and problems, details of
// validation issues and log messages. Programs do not depend on these texts, and other tests check that the texts
// contain no secret.

/** The parts of a Babel path (https://babeljs.io/docs/babel-traverse) that the plugin reads. */
interface Path {
  node: Node;
  parent?: Node | null;
}

interface Node {
  type: string;
  callee?: { name?: string; property?: { name?: string }; object?: { name?: string } };
  arguments?: unknown[];
  key?: { name?: string };
  value?: unknown;
}

const reason = 'a text for people';
const logMethods = new Set(['debug', 'info', 'warn', 'error']);
/** Properties of problems, validation issues and the list of untrusted headers that contain texts for people. */
const textProperties = new Set(['detail', 'description', 'message', 'source', 'claim']);

function isText({ node, parent }: Path): boolean {
  if (node.type !== 'StringLiteral' && node.type !== 'TemplateLiteral') return false;
  if (!parent) return false;
  if (parent.type === 'ObjectProperty') return parent.value === node && textProperties.has(parent.key?.name ?? '');
  if (parent.type === 'NewExpression') {
    if (parent.callee?.name === 'Problem') return parent.arguments?.indexOf(node) === 1;
    if (parent.callee?.name === 'Rejection') return parent.arguments?.indexOf(node) === 2;
    return parent.callee?.name?.endsWith('Error') === true;
  }
  return parent.type === 'CallExpression' && logMethods.has(parent.callee?.property?.name ?? '');
}

export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'texts',
    value: { shouldIgnore: (path: Path) => (isText(path) ? reason : undefined) },
  },
];
