// Defines the platform's APIs, and the variables `DIR_<NAMESPACE>_<SERVICE>[_<API>]`, which replace entries of the
// directory.
import { type ConfigCheck, ConfigError } from '../service/operations/config.ts';
import { hasQueryOrFragment, withoutTrailingSlashes } from '../service/url-text.ts';

/** Well-known paths of platform APIs. They apply to an API whose URN has no entry in the directory. */
export const apiPaths: Readonly<Record<string, string>> = {
  'tenant-service:v2': '/api/tenant/v2',
  'configuration-service:v2': '/configuration/v2',
  'event-service:v1': '/event/v1',
  'notification-service:v1': '/subscription/v1',
  'verify-service:v1': '/verify/v1',
  'file-service:v1': '/file/v1',
  'form-service:v1': '/form/v1',
  'token-handler:v1': '/token-handler/v1',
};

/** Returns the name of a variable: `DIR_PLATFORM_EVENT_SERVICE` for `('platform', 'event-service')`. */
export function variableOf(...names: string[]): string {
  const text = names.map((name) => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')).join('_');
  return names.length > 1 ? `DIR_${text}` : text;
}

/**
 * Returns the text without trailing slashes if it is an http(s) URL without credentials, query or fragment. Otherwise
 * returns undefined.
 */
export function usableUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined;
  if (url.username || url.password || hasQueryOrFragment(text)) return undefined;
  return withoutTrailingSlashes(text.trim());
}

/**
 * Returns the `DIR_…` variables of an environment. Throws a ConfigError that names every variable that is not an
 * http(s) URL.
 */
export function directoryOverrides(env: NodeJS.ProcessEnv): Record<string, string> {
  const overrides: Record<string, string> = {};
  const problems: { name: string; problem: string }[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('DIR_') || !value) continue;
    const url = usableUrl(value);
    if (url === undefined) problems.push({ name, problem: 'must be an http or https URL without credentials' });
    else overrides[name] = url;
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return overrides;
}

/** The configuration check for every process that uses the directory. */
export const directoryCheck: ConfigCheck = { names: [], run: (_values, env) => directoryOverrides(env) };

/** The variables of the platform's services and APIs. Other `DIR_…` variables are for services of tenants. */
export const platformVariables: readonly string[] = Object.keys(apiPaths).flatMap((name) => {
  const [service = '', api = ''] = name.split(':');
  const variable = variableOf('platform', service);
  return [variable, `${variable}_${variableOf(api)}`];
});
