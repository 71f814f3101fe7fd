// Fills in the defaults of the questions, in a new draft and in a new item of a list.
import { pagesOf } from './elements.ts';
import { type Field, itemPlace } from './fields.ts';
import { isObject, valueAt, withValueAt } from './json.ts';
import { detailOf, fieldsOf } from './questions.ts';

/** Creates the form data of a new draft. */
export function defaultsOf({ dataSchema, uiSchema }: { dataSchema: unknown; uiSchema: unknown }): unknown {
  const schema = isObject(dataSchema) ? dataSchema : {};
  const place = { root: schema, schema, path: [] };
  const pages = pagesOf(uiSchema, place);
  return withDefaults({}, (data) => pages.flatMap((page) => fieldsOf(page.elements, place, data)));
}

/** Creates the item that a person adds to a list as number `index`, counted from 0. */
export function newItem(list: Field, index: number): unknown {
  const place = itemPlace(list, index);
  const { schema, path } = place;
  if (schema.type !== 'object' && schema.properties === undefined) return schema.default ?? '';
  const given = withValueAt({}, path, structuredClone(schema.default ?? {}));
  return valueAt(
    withDefaults(given, (data) => fieldsOf(detailOf(list, place), place, data)),
    path,
  );
}

/** A default may show further questions, whose defaults may show others. A schema can make this endless. */
const mostRounds = 10;

function withDefaults(data: unknown, fieldsFor: (data: unknown) => readonly Field[]): unknown {
  let filled = data;
  for (let round = 0; round < mostRounds; round += 1) {
    const before = filled;
    for (const { path, place } of fieldsFor(filled)) {
      const given = place.schema.default;
      if (given !== undefined && valueAt(filled, path) === undefined)
        filled = withValueAt(filled, path, structuredClone(given));
    }
    if (filled === before) break;
  }
  return filled;
}
