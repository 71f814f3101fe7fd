// Reads form definitions from the tenant's configuration: from a property of `platform:form-service` or, if that does
// not exist, from the configuration `form-service:<id>`. The platform client caches configurations, and reads them
// again if they do not contain the definition. This module caches only parsed definitions.
import type { Configuration, Lookup } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-answers.ts';
import { isObject, memberOf } from '../../service/json-value.ts';
import { definitionIdPattern, type FormDefinition, parseDefinition } from './definition.ts';

export type DefinitionSource = ReturnType<typeof createDefinitionSource>;

interface FindOptions {
  permission: boolean;
  isChosen?: boolean;
}

export function createDefinitionSource(configuration: Pick<Configuration, 'activeOrLatest'>) {
  // The platform client returns the same object until a configuration changes (platform/cache.ts).
  const parsed = new WeakMap<object, FormDefinition>();

  function parse(id: string, configured: unknown): FormDefinition {
    const known = isObject(configured) ? parsed.get(configured) : undefined;
    if (known?.id === id) return known;
    const definition = parseDefinition(id, configured);
    if (isObject(configured)) parsed.set(configured, definition);
    return definition;
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

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (isObject(value) && Object.keys(value).length === 0);
}
