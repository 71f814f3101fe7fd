// Reads form definitions from the tenant's configuration: from a property of `platform:form-service` or, if that does
// not exist, from the configuration `form-service:<id>`. The platform client caches configurations, and reads them
// again if they do not contain the definition. This module caches only the results of parsing.
import type { Configuration, Lookup } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-responses.ts';
import { Problem } from '../../service/http/problem.ts';
import { isObject, memberOf } from '../../service/json-value.ts';
import { definitionIdPattern, type FormDefinition, parseDefinition } from './definition.ts';

export type DefinitionSource = ReturnType<typeof createDefinitionSource>;

interface FindOptions {
  permission: boolean;
  isChosen?: boolean;
}

export function createDefinitionSource(configuration: Pick<Configuration, 'activeOrLatest'>) {
  // The platform client returns the same object until a configuration changes (platform/cache.ts). Problems are kept
  // too: parsing an invalid definition of a megabyte takes 0.1 s, and anyone may ask for a form definition.
  const parsed = new WeakMap<object, { id: string; result: FormDefinition | Problem }>();

  function parse(id: string, configured: unknown): FormDefinition {
    const known = isObject(configured) ? parsed.get(configured) : undefined;
    const result = known?.id === id ? known.result : parsedOrProblem(id, configured);
    if (isObject(configured)) parsed.set(configured, { id, result });
    if (result instanceof Problem) throw result;
    return result;
  }

  /** Definitions with fields. Listing the fields of a definition with 100,000 fields takes 50 ms. */
  const filled = new WeakSet();
  function isEmpty(value: unknown): boolean {
    if (!isObject(value)) return value === undefined || value === null;
    if (filled.has(value)) return false;
    if (Object.keys(value).length === 0) return true;
    filled.add(value);
    return false;
  }

  return {
    /**
     * Finds and parses a definition. Returns undefined if the tenant has no definition with this id. Set `permission`
     * if the definition decides on access; the definition is then at most five minutes old. Set `isChosen` if the
     * caller chose the id and may have invented it. Throws PlatformError, Problem `definition-invalid`, or Problem
     * `busy` if callers have chosen too many unknown ids.
     */
    async find(tenantId: string, id: string, { permission, isChosen = false }: FindOptions) {
      if (!definitionIdPattern.test(id)) return undefined;
      const inCollection = (revision: Revision | undefined) =>
        isObject(revision?.configuration) ? memberOf(revision.configuration, id) : undefined;
      const readCollection = async (read: Lookup) =>
        inCollection(await configuration.activeOrLatest('platform', 'form-service', { tenantId }, read));
      const readOwn = async (read: Lookup) =>
        (await configuration.activeOrLatest('form-service', id, { tenantId }, read))?.configuration;
      const cached = await readCollection({ permission });
      if (cached !== undefined) return parse(id, cached);
      const own = await readOwn({ permission, isChosen, lacks: (found) => isEmpty(found?.configuration) });
      if (!isEmpty(own)) return parse(id, own);
      const added = await readCollection({ permission, lacks: (found) => inCollection(found) === undefined });
      return added === undefined ? undefined : parse(id, added);
    },
  };
}

function parsedOrProblem(id: string, configured: unknown): FormDefinition | Problem {
  try {
    return parseDefinition(id, configured);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
