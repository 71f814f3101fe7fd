// Lists the fields that people currently see, and assigns the findings of the validation to these fields.
import { elementsOf, type FormPage, generated, isShown, type Place, type UiElement } from './elements.ts';
import { type Field, fieldOf, itemPlace } from './fields.ts';
import { isObject, type Path, pointerOf, startsWith, valueAt, withValueAt } from './json.ts';
import type { Finding, Validator } from './validator.ts';

/** Lists the visible fields in their order. The field of an object or list is followed by the fields inside it. */
export function fieldsOf(elements: readonly UiElement[], place: Place, data: unknown, depth = 0): Field[] {
  if (depth > 30) return [];
  return elements.flatMap((element): Field[] => {
    if (!isShown(element, data, place.path)) return [];
    const field = element.scope === undefined ? undefined : fieldOf(element, place);
    if (!field) return fieldsOf(elementsOf(element.elements), place, data, depth + 1);
    return [field, ...innerFields(field, data, depth)];
  });
}

function innerFields(field: Field, data: unknown, depth: number): Field[] {
  if (field.kind === 'object') return fieldsOf(detailOf(field, field.place), field.place, data, depth + 1);
  if (field.kind !== 'list') return [];
  return itemsOf(field, data).flatMap((_item, index) => {
    const place = itemPlace(field, index);
    return fieldsOf(detailOf(field, place), place, data, depth + 1);
  });
}

export function itemsOf({ path }: Field, data: unknown): readonly unknown[] {
  const list = valueAt(data, path);
  return Array.isArray(list) ? list : [];
}

/**
 * Returns the elements for an object or a list item: the elements in the UI schema, or one element for each property.
 */
export function detailOf({ options, element }: Field, place: Place): UiElement[] {
  const detail = isObject(options.detail) ? elementsOf([{ type: 'VerticalLayout', ...options.detail }]) : [];
  const given = detail.length > 0 ? detail : elementsOf(element.elements);
  if (given.length > 0) return given;
  // The limit stops the recursion of a schema that refers to itself. If a schema with properties has several types,
  // JSON Forms generates a single control for the whole value. That control is left out.
  const fields = place.path.length > 12 ? [] : generated(place);
  return fields.some(({ scope }) => scope === '#') && isObject(place.schema.properties) ? [] : fields;
}

export function visiblePages(pages: readonly FormPage[], data: unknown): FormPage[] {
  return pages.filter(({ category }) => category === undefined || isShown(category, data, []));
}

export interface PlacedFinding {
  finding: Finding;
  /** The field that shows the value; undefined if no visible field shows it. */
  field: Field | undefined;
}

/**
 * Returns the field with exactly this path. If there is none, returns the first field below the path. If there is none
 * either, returns the field whose answer contains the path, such as a list of choices. Returns undefined if no visible
 * question shows the value, and for the form as a whole (an empty path).
 */
export function fieldAt(path: Path, fields: readonly Field[]): Field | undefined {
  if (path.length === 0) return undefined;
  return (
    fields.find((field) => isLeaf(field) && pointerOf(field.path) === pointerOf(path)) ??
    fields.find((field) => isLeaf(field) && startsWith(field.path, path)) ??
    // The fields inside an object or a list show its values. A value that none of them shows is hidden.
    fields.findLast((field) => isLeaf(field) && field.kind !== 'list' && startsWith(path, field.path))
  );
}

/**
 * Returns the field to name for a missing value that no visible question shows: the innermost list around it or, if
 * there is none, a field of the section around it.
 */
export function fieldAround(path: Path, fields: readonly Field[]): Field | undefined {
  const list = fields.findLast(({ kind, path: around }) => kind === 'list' && startsWith(path, around));
  return list ?? fieldAt(path.slice(0, -1), fields);
}

const isLeaf = ({ kind }: Field) => kind !== 'object';

/**
 * Returns the path of the answer to remove if a value at `path` is invalid or missing and no visible question shows it:
 * the value itself or, if it is missing, the object around it. Returns undefined if no such answer exists.
 */
export function hiddenAnswerAt(path: Path, fields: readonly Field[], data: unknown): Path | undefined {
  if (path.length === 0 || fieldAt(path, fields)) return undefined;
  const around = path.slice(0, -1);
  // The items of a list are numbered, so an item cannot be removed alone.
  const isAnswer = valueAt(data, path) !== undefined && isObject(valueAt(data, around));
  return isAnswer ? path : hiddenAnswerAt(around, fields, data);
}

/** Finds the faults of form data, at most one for each field, in the order of the fields. */
export function findingsFor(data: unknown, fields: readonly Field[], validator: Validator): PlacedFinding[] {
  const placed = validateInside(data, fields, validator).map((finding) => ({
    finding,
    field: fieldAt(finding.path, fields),
  }));
  const order = (field: Field | undefined) => (field ? fields.indexOf(field) : fields.length);
  const sorted = placed.toSorted((one, other) => order(one.field) - order(other.field));
  return sorted.filter(({ field, finding }, index) => {
    const isSame = (other: PlacedFinding) =>
      field ? other.field === field : !other.field && pointerOf(other.finding.path) === pointerOf(finding.path);
    return sorted.findIndex(isSame) === index;
  });
}

/**
 * Validates the form data. If an object is missing but its fields are shown, the object is treated as empty, so that
 * each field gets its own message.
 */
function validateInside(data: unknown, fields: readonly Field[], validator: Validator): Finding[] {
  let completed = data;
  for (let round = 0; round < 10; round += 1) {
    const findings = validator(completed);
    const absent = findings.filter(
      ({ keyword, path }) => keyword === 'required' && fields.some((field) => isInside(field, path)),
    );
    if (absent.length === 0) return findings;
    for (const { path } of absent) completed = withValueAt(completed, path, {});
  }
  return validator(completed);
}

const isInside = (field: Field, path: Path) =>
  isLeaf(field) &&
  field.path.length > path.length &&
  startsWith(field.path, path) &&
  !/^\d+$/.test(field.path[path.length] ?? '');
