// A plugin that tells Stryker not to mutate texts that only people read: messages of errors and problems, details of
// validation issues, log messages, and the documentation of routes. Programs do not depend on these texts. Other tests
// check that no message contains a secret, and that each route is documented (test/rules/openapi-documents.test.ts).

/** The parts of a Babel path (https://babeljs.io/docs/babel-traverse) that the plugin reads. */
interface Path {
  node: Node;
  parent?: Node | null;
  parentPath?: Path | null;
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

const routeFunctions = new Set(['route', 'documentedRoute']);
/** Properties of a route that only its documentation uses. */
const documentation = new Set(['summary', 'description', 'headers', 'answers']);

/** True for `documentation` in the object that is passed to one of `routeFunctions`, and for all nodes inside. */
function isRouteDocumentation(path: Path): boolean {
  for (let property: Path | null | undefined = path; property; property = property.parentPath) {
    const isDocumentation = property.node.type === 'ObjectProperty' && documentation.has(property.node.key?.name ?? '');
    const call = property.parentPath?.parentPath?.node;
    if (isDocumentation && routeFunctions.has(call?.callee?.name ?? '')) return true;
  }
  return false;
}

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
    value: { shouldIgnore: (path: Path) => (isText(path) || isRouteDocumentation(path) ? reason : undefined) },
  },
];
