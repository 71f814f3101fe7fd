// Writes the JSON text of a form definition for its readers, once for each definition.
import { bundledSchema } from './bundled-schema.ts';
import type { FormDefinition } from './definition.ts';

/**
 * Returns a function that returns the text of a definition: for managers with all fields and their defaults, for other
 * readers with what they need to show the form. Keeps each text for as long as the definition exists, because the
 * definitions of a tenant are the same objects until they change. Writing a megabyte takes 35 ms, and anyone may read a
 * definition that permits applicants without an account.
 */
export function createDefinitionTexts(): (definition: FormDefinition, isManager: boolean) => Buffer {
  const [forManagers, forOthers] = [new WeakMap<FormDefinition, Buffer>(), new WeakMap<FormDefinition, Buffer>()];
  return (definition, isManager) => {
    const known = isManager ? forManagers : forOthers;
    const text = known.get(definition) ?? Buffer.from(JSON.stringify((isManager ? allOf : shownOf)(definition)));
    known.set(definition, text);
    return text;
  };
}

function allOf({ schemaKey: _key, schemaText: _text, ...definition }: FormDefinition): object {
  return { ...definition, dataSchema: bundledSchema(definition.dataSchema) };
}

function shownOf({ id, name, description, anonymousApply, dataSchema, uiSchema }: FormDefinition): object {
  return {
    id,
    name,
    ...(description && { description }),
    anonymousApply,
    dataSchema: bundledSchema(dataSchema),
    uiSchema,
  };
}
