// The register that the demo form chooses from.
export const countries = [
  ['AU', 'Australia'],
  ['BR', 'Brazil'],
  ['CA', 'Canada'],
  ['CH', 'Switzerland'],
  ['DE', 'Germany'],
  ['ES', 'Spain'],
  ['FR', 'France'],
  ['GB', 'United Kingdom'],
  ['IN', 'India'],
  ['IT', 'Italy'],
  ['JP', 'Japan'],
  ['KE', 'Kenya'],
  ['MX', 'Mexico'],
  ['NG', 'Nigeria'],
  ['NL', 'Netherlands'],
  ['NZ', 'New Zealand'],
  ['PH', 'Philippines'],
  ['PL', 'Poland'],
  ['UA', 'Ukraine'],
  ['US', 'United States'],
].map(([value, label]) => ({ value, label }));

/** Its definition in the tenant's `platform:configuration-service`. */
export const countriesDefinition = {
  description: 'Countries to choose from',
  configurationSchema: {
    type: 'array',
    items: {
      type: 'object',
      properties: { value: { type: 'string' }, label: { type: 'string' } },
      required: ['value', 'label'],
    },
  },
  anonymousRead: true,
};
