// Puts form data in the order and under the labels of its definition. Of JSON Schema, this module uses only titles,
// properties, items, options and local references. Data that the definition does not describe is shown as it is.
import { isObject } from '../../apply/model/json.ts';

export interface Labelled {
  label: string;
  /** A text, or the members of an object or list. */
  value: string | Labelled[];
}

type Schema = Record<string, unknown>;

interface Definition {
  dataSchema?: unknown;
  uiSchema?: unknown;
}

/** Maximum depth of the labelled data. Deeper data is shown as JSON. */
const deepest = 8;

export function labelledData(data: unknown, { dataSchema, uiSchema }: Definition): Labelled[] {
  const context = { root: asObject(dataSchema), controls: controlsOf(uiSchema) };
  const shown = shownValue(data, context.root, { ...context, scope: '#', depth: 0 });
  return typeof shown === 'string' ? [{ label: 'Data', value: shown }] : shown;
}

interface Context {
  root: Schema;
  /** Controls of the UI schema, keyed by scope. */
  controls: ReadonlyMap<string, Schema>;
  scope: string;
  depth: number;
}

function shownValue(data: unknown, written: Schema, context: Context): string | Labelled[] {
  const schema = resolved(written, context.root);
  if (data === null || data === undefined || data === '') return 'Not answered';
  if (typeof data !== 'object') return optionTitle(data, schema) ?? plainText(data, context);
  if (context.depth >= deepest) return JSON.stringify(data);
  if (Array.isArray(data)) return listOf(data, asObject(schema.items), context);
  return membersOf(data as Record<string, unknown>, asObject(schema.properties), context);
}

function listOf(data: unknown[], items: Schema, context: Context): string | Labelled[] {
  if (data.length === 0) return 'None';
  const values = data.map((item) => shownValue(item, items, { ...context, scope: '', depth: context.depth + 1 }));
  if (values.every((value) => typeof value === 'string')) return values.join(', ');
  return values.map((value, index) => ({ label: `${index + 1}`, value }));
}

function membersOf(data: Record<string, unknown>, properties: Schema, context: Context): Labelled[] {
  const known = Object.keys(properties).filter((name) => Object.hasOwn(data, name));
  const others = Object.keys(data).filter((name) => !Object.hasOwn(properties, name));
  return [...known, ...others].map((name) => {
    const scope = `${context.scope}/properties/${name}`;
    const schema = asObject(Object.hasOwn(properties, name) ? properties[name] : undefined);
    const title =
      textOf(context.controls.get(scope)?.label) ?? textOf(resolved(schema, context.root).title) ?? asWords(name);
    return { label: title, value: shownValue(data[name], schema, { ...context, scope, depth: context.depth + 1 }) };
  });
}

/** Returns the text of a value without a title. The options of a control may have texts for true and false. */
function plainText(data: unknown, { controls, scope }: Context): string {
  if (typeof data !== 'boolean') return String(data);
  const { textForTrue, textForFalse } = asObject(controls.get(scope)?.options);
  return data ? (textOf(textForTrue) ?? 'Yes') : (textOf(textForFalse) ?? 'No');
}

/** Returns the title of an option. `oneOf` and `anyOf` describe options by `const` and `title`. */
function optionTitle(value: unknown, { oneOf, anyOf }: Schema): string | undefined {
  const options = [oneOf, anyOf].flatMap((list) => (Array.isArray(list) ? list.map(asObject) : []));
  return textOf(options.find((option) => option.const === value)?.title);
}

/** Follows `#/…` references, and stops at circular ones. */
function resolved(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let steps = 0; steps < deepest && typeof found.$ref === 'string'; steps += 1) {
    if (!found.$ref.startsWith('#/')) return found;
    const names = found.$ref.slice(2).split('/');
    found = asObject(names.reduce<unknown>((at, name) => asObject(at)[unescaped(name)], root));
  }
  return found;
}

/** Decodes a name in a JSON pointer (RFC 6901 section 4). */
const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~');

function controlsOf(uiSchema: unknown): Map<string, Schema> {
  const controls = new Map<string, Schema>();
  const visit = (element: Schema, depth: number) => {
    if (typeof element.scope === 'string') controls.set(element.scope, element);
    if (depth < 32 && Array.isArray(element.elements))
      for (const child of element.elements) visit(asObject(child), depth + 1);
  };
  visit(asObject(uiSchema), 0);
  return controls;
}

function asObject(value: unknown): Schema {
  return isObject(value) ? value : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Converts a name into words: `postalCode` becomes `Postal code`. */
function asWords(name: string): string {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1).toLowerCase();
}
