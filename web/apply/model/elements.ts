// Reads the UI schema of a definition: pages, elements, rules and the fields that controls describe. JSON Forms defines
// the meaning of rules, scopes and generated UI schemas. An invalid or unknown UI schema causes no error in this
// module.
import { generateDefaultUISchema, isEnabled, isVisible, resolveSchema, type UISchemaElement } from '@jsonforms/core';
import { isObject, type JsonObject, type Path, pathOf } from './json.ts';
import { matches } from './validator.ts';

export interface UiElement extends JsonObject {
  type: string;
}

export interface FormPage {
  /** Title of the page; undefined if the definition does not name the page. */
  title: string | undefined;
  /** The UI schema's category for the page; its rule may hide the page. Undefined if the page is not a category. */
  category: UiElement | undefined;
  elements: readonly UiElement[];
}

/**
 * The part of the form that scopes are relative to: the whole form or, in the detail of a list, one of the list's
 * items.
 */
export interface Place {
  /** The whole data schema, which is needed to resolve references. */
  root: JsonObject;
  schema: JsonObject;
  path: Path;
}

/** Returns the objects in the list. An object without a type gets the type `Unknown`. */
export function elementsOf(list: unknown): UiElement[] {
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map((element) => ({ ...element, type: textOf(element.type) ?? 'Unknown' }));
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function optionsOf(element: JsonObject): JsonObject {
  return isObject(element.options) ? element.options : {};
}

/**
 * Returns one page for each category, or a single page if there are no categories. An inner categorization is replaced
 * by its categories.
 */
export function pagesOf(uiSchema: unknown, place: Place): FormPage[] {
  const [root] = elementsOf([uiSchema]);
  if (!root || Object.keys(root).length < 2)
    return [{ title: undefined, category: undefined, elements: generated(place) }];
  const only = elementsOf(root.elements);
  const inner = only.length === 1 && isCategorization(only[0]) ? only[0] : undefined;
  const stepper = isCategorization(root) ? root : inner;
  const pages = stepper ? categoriesOf(stepper) : [];
  return pages.length > 0 ? pages : [{ title: undefined, category: undefined, elements: [root] }];
}

const isCategorization = (element: UiElement | undefined): boolean => element?.type === 'Categorization';

function categoriesOf(element: UiElement): FormPage[] {
  return elementsOf(element.elements).flatMap((category): FormPage[] => {
    if (isCategorization(category)) return categoriesOf(category);
    if (category.type !== 'Category') return [{ title: undefined, category: undefined, elements: [category] }];
    return [{ title: labelOf(category), category, elements: elementsOf(category.elements) }];
  });
}

/**
 * Generates a control for each property of the schema. Objects and forms without a UI schema are shown with these
 * controls.
 */
export function generated({ root, schema }: Place): UiElement[] {
  try {
    // For a schema with `allOf`, `anyOf` or `oneOf`, JSON Forms would generate a single control, even if the schema has
    // properties.
    const plain = isObject(schema.properties) ? { ...schema, allOf: [], anyOf: [], oneOf: [] } : schema;
    const element: unknown = generateDefaultUISchema(plain, 'VerticalLayout', '#', root);
    return isObject(element) ? elementsOf(element.elements ?? [element]) : [];
  } catch {
    return [];
  }
}

/** Returns the label of an element, which is either a text, or an object that may hide the label. */
export function labelOf({ label }: JsonObject): string | undefined {
  if (isObject(label)) return label.show === false ? undefined : textOf(label.text);
  return textOf(label);
}

const interpreter = { validate: matches } as unknown as Parameters<typeof isVisible>[3];

/** True unless a rule hides the element. A rule that cannot be evaluated hides nothing. */
export function isShown(element: UiElement, data: unknown, place: Path): boolean {
  return evaluated(element, () => isVisible(ruled(element), data, place.join('.'), interpreter, undefined));
}

export function isOperable(element: UiElement, data: unknown, place: Path): boolean {
  return evaluated(element, () => isEnabled(ruled(element), data, place.join('.'), interpreter, undefined));
}

function evaluated({ rule }: UiElement, evaluate: () => boolean): boolean {
  if (!isObject(rule) || !isObject(rule.condition)) return true;
  try {
    return evaluate();
  } catch {
    return true;
  }
}

const ruled = (element: UiElement) => element as unknown as UISchemaElement;

/** Returns the place that a scope names; undefined if the data schema does not describe the scope. */
export function placeAt(scope: unknown, { root, schema, path }: Place): Place | undefined {
  if (typeof scope !== 'string' || !scope.startsWith('#')) return undefined;
  const found = dereferenced(resolved(schema, scope, root), root);
  if (!found) return undefined;
  return { root, schema: found, path: [...path, ...dataPath(scope)] };
}

function resolved(schema: JsonObject, scope: string, root: JsonObject): unknown {
  try {
    return scope === '#' ? schema : resolveSchema(schema, scope, root);
  } catch {
    return undefined;
  }
}

/** Follows references, and merges the members of `allOf`. */
export function dereferenced(schema: unknown, root: JsonObject): JsonObject | undefined {
  let found = schema;
  for (let hops = 0; hops < 20 && isObject(found) && typeof found.$ref === 'string'; hops += 1) {
    const { $ref, ...beside } = found;
    const target = resolved(root, String($ref), root);
    if (!isObject(target)) return beside;
    found = { ...target, ...beside };
  }
  if (found === true) return {};
  if (!isObject(found) || !Array.isArray(found.allOf) || found.type !== undefined)
    return isObject(found) ? found : undefined;
  return Object.assign({}, ...found.allOf.map((inner) => dereferenced(inner, root)), found);
}

/** Converts a scope into a path: `#/properties/address/properties/city` becomes `address`, `city`. */
function dataPath(scope: string): string[] {
  const names = pathOf(scope);
  const path: string[] = [];
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index] ?? '';
    if (name === 'items') path.push('0');
    if (name !== 'properties') continue;
    index += 1;
    path.push(names[index] ?? '');
  }
  return path;
}
