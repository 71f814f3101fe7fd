// Derives the field of a control from the definition's schemas: the kind of question, its label, hint and choices.
import { dereferenced, labelOf, optionsOf, type Place, placeAt, textOf, type UiElement } from './elements.ts';
import { isObject, type JsonObject, type Path, pathOf } from './json.ts';
import { type Choice, type RegisterUse, registerOf } from './registers.ts';

/** `checkbox` is one box, `checkboxes` a list of choices, `yes-no` two radio buttons. */
export type FieldKind =
  | 'checkbox'
  | 'yes-no'
  | 'choice'
  | 'checkboxes'
  | 'number'
  | 'integer'
  | 'text'
  | 'textarea'
  | 'date'
  | 'time'
  | 'date-time'
  | 'file'
  | 'computed'
  | 'object'
  | 'list';

export interface Field {
  kind: FieldKind;
  path: Path;
  place: Place;
  label: string;
  hint: string | undefined;
  isRequired: boolean;
  choices: readonly Choice[];
  register: RegisterUse | undefined;
  /** True if the definition asks for radio buttons instead of a menu. */
  asRadio: boolean;
  options: JsonObject;
  element: UiElement;
}

/** Returns the field of a control; undefined if the data schema does not describe the control's scope. */
export function fieldOf(element: UiElement, place: Place): Field | undefined {
  const found = placeAt(element.scope, place);
  if (!found) return undefined;
  const options = optionsOf(element);
  const schema = alternativeOf(found.schema, found.root);
  const register = registerOf(options);
  const isRequired = requires(element.scope, place);
  const asRadio = options.radio === true || options.format === 'radio';
  const choices = choicesOf(isList(schema) ? itemsOf(schema, found.root) : schema);
  return {
    kind: kindOf(schema, { options, isRequired, hasChoices: choices.length > 0 || register !== undefined, asRadio }),
    path: found.path,
    place: { ...found, schema },
    label: labelOf(element) ?? textOf(schema.title) ?? nameOf(found.path),
    hint: hintOf(schema, options),
    isRequired,
    choices,
    register,
    asRadio,
    options,
    element,
  };
}

/**
 * Merges the first alternative of `anyOf` or `oneOf` into the schema. Returns the schema unchanged if it has a type, or
 * if its alternatives are choices.
 */
function alternativeOf(schema: JsonObject, root: JsonObject): JsonObject {
  if (schema.type !== undefined || schema.enum !== undefined || choicesOf(schema).length > 0) return schema;
  const list = [schema.anyOf, schema.oneOf].find(Array.isArray);
  const first = list && dereferenced(list[0], root);
  return first ? { ...schema, ...first, anyOf: undefined, oneOf: undefined } : schema;
}

const isList = (schema: JsonObject) => typesOf(schema).includes('array');

function itemsOf(schema: JsonObject, root: JsonObject): JsonObject {
  const { items } = schema;
  return dereferenced(Array.isArray(items) ? items[0] : items, root) ?? {};
}

/** The place of one item of a list. */
export function itemPlace({ place, path }: Field, index: number): Place {
  return { root: place.root, schema: itemsOf(place.schema, place.root), path: [...path, String(index)] };
}

function typesOf({ type, properties, items }: JsonObject): unknown[] {
  if (type !== undefined) return [type].flat();
  if (isObject(properties)) return ['object'];
  return items === undefined ? [] : ['array'];
}

interface Asked {
  options: JsonObject;
  isRequired: boolean;
  hasChoices: boolean;
  asRadio: boolean;
}

function kindOf(schema: JsonObject, { options, isRequired, hasChoices, asRadio }: Asked): FieldKind {
  const types = typesOf(schema);
  const has = (type: string) => types.includes(type);
  if (schema.format === 'file-urn') return 'file';
  if (has('array')) return hasChoices ? 'checkboxes' : 'list';
  if (has('object')) return 'object';
  if (has('boolean')) return asRadio || hasChoices || (isRequired && schema.const !== true) ? 'yes-no' : 'checkbox';
  if (hasChoices) return 'choice';
  if (has('integer') && !has('string')) return 'integer';
  if (has('number') && !has('string')) return 'number';
  return textKind(schema, options);
}

function textKind({ format }: JsonObject, options: JsonObject): FieldKind {
  if (format === 'date' || format === 'time' || format === 'date-time' || format === 'computed') return format;
  return options.multi === true || options.format === 'textarea' ? 'textarea' : 'text';
}

function choicesOf(schema: JsonObject): Choice[] {
  const titled = [schema.oneOf, schema.anyOf].find((list) => Array.isArray(list) && list.every(isConstant));
  if (Array.isArray(titled))
    return titled.filter(isObject).map((one) => ({ value: one.const, label: textOf(one.title) ?? String(one.const) }));
  if (typesOf(schema).includes('boolean')) return [];
  const values = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
  return values
    .filter((value) => value !== '' && value !== null && typeof value !== 'object')
    .map((value) => ({ value, label: String(value) }));
}

const isConstant = (schema: unknown) => isObject(schema) && 'const' in schema;

/**
 * Returns the two choices of a field of the kind `yes-no`. Their labels are the titles or the texts of the definition,
 * otherwise the given words.
 */
export function yesNoChoices({ choices, options }: Field, words: { yes: string; no: string }): Choice[] {
  const labelOf = (value: boolean, option: unknown, word: string) => {
    const title = choices.find((choice) => choice.value === value)?.label;
    // A choice without a title has its value as the label.
    return (title === String(value) ? undefined : title) ?? textOf(option) ?? word;
  };
  return [
    { value: true, label: labelOf(true, options.textForTrue, words.yes) },
    { value: false, label: labelOf(false, options.textForFalse, words.no) },
  ];
}

function hintOf(schema: JsonObject, options: JsonObject): string | undefined {
  if (schema.format === 'computed') return undefined;
  const props = isObject(options.componentProps) ? options.componentProps : {};
  return textOf(options.help) ?? textOf(schema.description) ?? textOf(props.placeholder);
}

/** True if the schema of the surrounding object requires the property. */
function requires(scope: unknown, place: Place): boolean {
  if (typeof scope !== 'string') return false;
  // The scope `#` stands for a list item. An item counts as required, because the person added it on purpose.
  if (scope === '#') return true;
  const at = scope.lastIndexOf('/properties/');
  const [, name] = pathOf(at < 0 ? '' : scope.slice(at));
  const owner = name === undefined ? undefined : placeAt(scope.slice(0, at) || '#', place);
  const required = owner?.schema.required;
  return Array.isArray(required) && required.includes(name);
}

/** Returns the label for a value that no visible question shows: the title of its schema, or a name from its path. */
export function titleAt(path: Path, place: Place): string {
  const scope = path.map((name) => (/^\d+$/.test(name) ? '/items' : `/properties/${name}`)).join('');
  return textOf(placeAt(`#${scope}`, place)?.schema.title) ?? nameOf(path);
}

/** Derives a label from the last name of a path: `businessName` becomes `Business name`. */
export function nameOf(path: Path): string {
  const words = (path.findLast((name) => !/^\d+$/.test(name)) ?? '')
    .replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .trim();
  return words.slice(0, 1).toUpperCase() + words.slice(1).toLowerCase();
}
