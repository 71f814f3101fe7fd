// Definitions of configurations. A definition contains the schema of the value, and whether the value is readable
// without a token. Definitions are stored in the configuration platform:configuration-service. The definitions of that
// configuration, and of the configurations of this process's own services, are built in.
import { jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { CodePiece } from '../written-code.ts';
import type { JsonObject } from './configuration.ts';

export interface Definition {
  configurationSchema: unknown;
  anonymousRead: boolean;
}

/** The configuration that contains the definitions. */
export const definitionsHome = { namespace: 'platform', name: 'configuration-service' };

/** Returns the two possible keys of a configuration's definition, the more specific one first. */
export function definitionKeys(namespace: string, name: string): [string, string] {
  return [`${namespace}:${name}`, namespace];
}

/**
 * Chooses the definition of a configuration. `found` contains the entries for its keys: first `[specific, general]`
 * from core configuration, then `[specific, general]` from the tenant's configuration. Entries without a schema are
 * ignored.
 */
export function chooseDefinition(found: unknown[]): Definition | undefined {
  const entry = found.find((candidate) => isObject(candidate) && candidate.configurationSchema !== undefined);
  if (!isObject(entry)) return undefined;
  return { configurationSchema: entry.configurationSchema, anonymousRead: entry.anonymousRead === true };
}

/** Returns the schemas in platform:configuration-service. */
export function* schemasOfDefinitions(document: unknown): Generator<CodePiece> {
  for (const [key, definition] of Object.entries(isObject(document) ? document : {})) {
    if (!isObject(definition) || definition.configurationSchema === undefined) continue;
    const source = JSON.stringify(definition.configurationSchema);
    yield { kind: 'schema', pointer: jsonPointer([key, 'configurationSchema']), source };
  }
}

const namePattern = '[a-zA-Z0-9-_ ]{1,50}';

/** The schema of platform:configuration-service. Each member is a definition. */
export const definitionsSchema: JsonObject = {
  type: 'object',
  patternProperties: {
    [`^${namePattern}(:${namePattern})?$`]: {
      type: 'object',
      properties: {
        configurationSchema: { $ref: 'http://json-schema.org/draft-07/schema#' },
        description: { type: ['string', 'null'] },
        anonymousRead: { type: 'boolean', default: false },
      },
      required: ['configurationSchema'],
      additionalProperties: false,
    },
  },
  additionalProperties: false,
};
