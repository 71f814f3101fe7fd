// The schemas that form definitions may refer to. They are part of the product, because no schema is ever fetched.
import type { Ajv } from 'ajv';
import common from './shared-schemas/common.v1.schema.json' with { type: 'json' };
import standard from './shared-schemas/standard.v1.schema.json' with { type: 'json' };

const schemas = [common, standard];

export function addSharedSchemas(ajv: Ajv): void {
  for (const schema of schemas) {
    // Skips the validation of the shared schemas. They are written in draft 7, but use only keywords that have the same
    // meaning in all drafts.
    const isValidated = false;
    ajv.addSchema(schema, undefined, undefined, isValidated);
    // Relative references name the schema by its file name.
    ajv.addSchema(schema, fileName(schema.$id), undefined, isValidated);
  }
}

/** Returns the shared schema with this `$id` or file name. */
export function sharedSchema(name: string): Record<string, unknown> | undefined {
  return schemas.find(({ $id }) => name === $id || name === fileName($id));
}

/** True if the reference names one of the shared schemas. Its fragment may point to a part that does not exist. */
export function isSharedSchema(reference: string): boolean {
  return sharedSchema(reference.split('#')[0] ?? '') !== undefined;
}

function fileName(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}
