// Reads form definitions from the tenant's configuration: a property of `platform:form-service`, else the configuration
// `form-service:<id>`. The platform client caches configurations; this module caches only parsed definitions.
import type { Configuration } from '../../platform/configuration.ts';
import { isObject } from '../../service/json-value.ts';
import { definitionIdPattern, type FormDefinition, parseDefinition } from './definition.ts';

export type DefinitionSource = ReturnType<typeof createDefinitionSource>;

export function createDefinitionSource(configuration: Pick<Configuration, 'activeOrLatest'>) {
  // The platform client returns the same object while a configuration is unchanged (platform/cache.ts).
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
     * Returns undefined if the tenant has no definition with this id. Pass `permission: true` if the definition decides
     * on access; it is then at most five minutes old. Throws PlatformError, or Problem `definition-invalid`.
     */
    async find(tenantId: string, id: string, { permission }: { permission: boolean }) {
      if (!definitionIdPattern.test(id)) return undefined;
      const read = (namespace: string, name: string) =>
        configuration.activeOrLatest(namespace, name, { tenantId }, { permission });
      const collection = (await read('platform', 'form-service'))?.configuration;
      if (isObject(collection) && Object.hasOwn(collection, id)) return parse(id, collection[id]);
      const own = await read('form-service', id);
      return own && !isEmpty(own.configuration) ? parse(id, own.configuration) : undefined;
    },
  };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (isObject(value) && Object.keys(value).length === 0);
}
