// Derives the operationId of a route from its method and path, so that generated clients have readable names, such as
// `createForm`. A name changes only if the method or the path changes. Pure functions only.

const verbs: Record<string, string> = { get: 'get', post: 'post', put: 'set', patch: 'update', delete: 'delete' };
const collectionVerbs: Record<string, string> = { get: 'list', post: 'create' };

/**
 * Returns the operationId of a call, such as `getFormData` for `get` and `/form/v1/forms/{formId}/data`. The parameters
 * of `path` are in braces.
 */
export function operationIdOf(method: string, path: string): string {
  const all = path.split('/').filter((segment) => segment !== '');
  const segments = all.slice(all.findIndex((segment) => /^v\d+$/.test(segment)) + 1);
  const isCollection = isPlural(segments.at(-1) ?? '');
  const verb = (isCollection && collectionVerbs[method]) || verbs[method] || method;
  const words = segments.map((segment, index) => {
    const next = segments[index + 1];
    if (isParameter(segment)) return isPlural(segments[index - 1] ?? '') ? '' : `By-${segment.slice(1, -1)}`;
    const isOne = isPlural(segment) && (next !== undefined ? isParameter(next) : verb === 'create');
    return isOne ? singular(segment) : segment;
  });
  return verb + (words.map(pascal).join('') || 'Service');
}

const isParameter = (segment: string) => segment.startsWith('{');
const isPlural = (segment: string) => /[^s]s$/.test(segment);
const singular = (word: string) => word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1');
const pascal = (text: string) =>
  text.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_all, first: string) => first.toUpperCase());
