// Creates the form data of a new draft from the defaults of the questions.
import { pagesOf } from './elements.ts';
import { isObject, withValueAt } from './json.ts';
import { fieldsOf } from './questions.ts';

export function defaultsOf({ dataSchema, uiSchema }: { dataSchema: unknown; uiSchema: unknown }): unknown {
  const schema = isObject(dataSchema) ? dataSchema : {};
  const place = { root: schema, schema, path: [] };
  const fields = pagesOf(uiSchema, place).flatMap((page) => fieldsOf(page.elements, place, {}));
  return fields.reduce<unknown>((data, field) => {
    const given = field.place.schema.default;
    return given === undefined ? data : withValueAt(data, field.path, structuredClone(given));
  }, {});
}
