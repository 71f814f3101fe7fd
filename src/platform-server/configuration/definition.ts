// Definitions say what a configuration may hold and who may read it. They are configuration themselves, in
// platform:configuration-service; that one's own definition, and those of the services in this process, are built in.
import { jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { CodePiece } from '../written-code.ts';
import type { JsonObject } from './configuration.ts';

export interface Definition {
  configurationSchema: unknown;
  anonymousRead: boolean;
}

/** Where definitions are kept. */
export const definitionsHome = { namespace: 'platform', name: 'configuration-service' };

/** The keys under which a configuration's definition may stand, the more specific first. */
export function definitionKeys(namespace: string, name: string): [string, string] {
  return [`${namespace}:${name}`, namespace];
}

/**
 * Picks the definition of a configuration from the entries found under its keys, `[specific, general]` of core, then of
 * the tenant. An entry that is no definition counts as absent.
 */
export function chooseDefinition(found: unknown[]): Definition | undefined {
  const entry = found.find((candidate) => isObject(candidate) && candidate.configurationSchema !== undefined);
  if (!isObject(entry)) return undefined;
  return { configurationSchema: entry.configurationSchema, anonymousRead: entry.anonymousRead === true };
}

/** The schemas in platform:configuration-service. */
export function schemasOfDefinitions(document: unknown): CodePiece[] {
  return Object.entries(isObject(document) ? document : {}).flatMap(([key, definition]) => {
    if (!isObject(definition) || definition.configurationSchema === undefined) return [];
    const source = JSON.stringify(definition.configurationSchema);
    return [{ kind: 'schema' as const, pointer: jsonPointer([key, 'configurationSchema']), source }];
  });
}

const namePattern = '[a-zA-Z0-9-_ ]{1,50}';

/** The schema of platform:configuration-service: each key one definition, and nothing else in it. */
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
