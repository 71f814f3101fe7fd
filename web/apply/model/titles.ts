// Labels the fields for the summary of answers and for error messages. Both show a list item's field without its list,
// so the label gets the number of the item.
import type { Texts } from '../texts/texts.ts';
import type { Field } from './fields.ts';
import { startsWith } from './json.ts';

/** Adds the number of the item to the labels of fields in lists. */
export const withTitles = (fields: readonly Field[], texts: Texts): Field[] =>
  fields.map((field) => titled(field, fields, texts));

/** Adds the number of the item to the label of a field in a list. `fields` contains the list. */
export function titled(field: Field, fields: readonly Field[], texts: Texts): Field {
  const list = fields.findLast(
    ({ kind, path }) => kind === 'list' && path.length < field.path.length && startsWith(field.path, path),
  );
  if (!list) return field;
  const item = texts.fields.item(list.label, Number(field.path[list.path.length]) + 1);
  return { ...field, label: field.label === list.label ? item : `${item}, ${field.label}` };
}

/**
 * Returns the fields to show in the summary and on the receipt, including unanswered ones. Omits objects and lists with
 * items, because `fields` also contains the fields inside them.
 */
export const summarized = (fields: readonly Field[], isEmptyList: (field: Field) => boolean): Field[] =>
  fields.filter((field) => field.kind !== 'object' && (field.kind !== 'list' || isEmptyList(field)));
