// Copies the shared schemas that a data schema refers to into its `definitions`, so that a form renderer needs no other
// document.
import { isObject } from '../../service/json-value.ts';
import { isSharedSchema, sharedSchema } from './shared-schemas.ts';

/**
 * Returns an equivalent schema whose references point only into the schema itself. References to unknown documents stay
 * as they are.
 */
export function bundledSchema(schema: unknown): unknown {
  const used = new Map<string, Record<string, unknown>>();
  const bundled = rewritten(schema, '', used);
  if (!isObject(bundled) || used.size === 0) return bundled;
  const definitions: Record<string, unknown> = isObject(bundled.definitions) ? { ...bundled.definitions } : {};
  // A shared schema may refer to another shared schema. `rewritten` then adds that schema to `used`, and the loop also
  // visits it.
  for (const [key, shared] of used) {
    const { $id: _id, $schema: _schema, ...rest } = shared;
    definitions[key] = rewritten(rest, `/definitions/${key}`, used);
  }
  return { ...bundled, definitions };
}

/**
 * Returns a copy of the schema whose references point into the bundle. `root` is the JSON pointer, within the bundle,
 * of the document that contains the schema.
 */
function rewritten(schema: unknown, root: string, used: Map<string, Record<string, unknown>>): unknown {
  if (Array.isArray(schema)) return schema.map((item: unknown) => rewritten(item, root, used));
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === '$ref' && typeof value === 'string' ? reference(value, root, used) : rewritten(value, root, used),
    ]),
  );
}

function reference(given: string, root: string, used: Map<string, Record<string, unknown>>): string {
  const [document = '', fragment = ''] = given.split('#');
  if (document === '') return fragment === '' || fragment.startsWith('/') ? `#${root}${fragment}` : given;
  const shared = isSharedSchema(given) ? sharedSchema(document) : undefined;
  if (!shared) return given;
  const key = String(shared.$id).replace(/^.*\//, '');
  used.set(key, shared);
  return `#/definitions/${key}${fragment}`;
}
