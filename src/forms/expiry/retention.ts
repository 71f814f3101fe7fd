// Reads how long the forms of each definition are kept. If a definition was removed, the default periods apply. If a
// definition cannot be read, it is skipped with a reason: its forms do not expire, because they may have to be kept for
// longer. A problem with one definition does not affect other definitions.
import type { Configuration } from '../../platform/configuration.ts';
import { isOutage } from '../../platform/platform-error.ts';
import { parseDuration } from '../../service/operations/duration.ts';
import type { FormDefinition } from '../definitions/definition.ts';
import { createDefinitionSource } from '../definitions/source.ts';
import type { Policy, Retention } from './expiry.ts';

export interface DefinitionKey {
  /** The tenant's URN. */
  tenantId: string;
  definitionId: string;
}

export interface SkippedDefinition extends DefinitionKey {
  /** `unreadable`: the configuration service failed. `invalid`: the definition cannot be used. */
  reason: 'invalid' | 'unreadable';
  error?: unknown;
}

export interface Retentions {
  policies: Policy[];
  skipped: SkippedDefinition[];
}

export interface RetentionReaderOptions {
  configuration: Pick<Configuration, 'activeOrLatest'>;
  defaults: Retention;
}

/** Maximum number of concurrent reads of definitions. */
const width = 8;

export function createRetentionReader({ configuration, defaults }: RetentionReaderOptions) {
  const source = createDefinitionSource(configuration);

  async function read({ tenantId, definitionId }: DefinitionKey): Promise<Policy | SkippedDefinition> {
    const key = { tenantId, definitionId };
    try {
      const definition = await source.find(tenantId, definitionId, { permission: false });
      // A definition that was removed gets the default periods. Otherwise, its forms would stay forever.
      const policy = policyOf(key, definition?.retention ?? {}, defaults);
      return policy ?? { ...key, reason: 'invalid' };
    } catch (error) {
      return { ...key, reason: isOutage(error) ? 'unreadable' : 'invalid', error };
    }
  }

  /** Returns the policies and the skipped definitions in the order of the keys. The promise never rejects. */
  return async function readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions> {
    const retentions: Retentions = { policies: [], skipped: [] };
    for (let start = 0; start < keys.length; start += width)
      for (const found of await Promise.all(keys.slice(start, start + width).map(read)))
        if ('retention' in found) retentions.policies.push(found);
        else retentions.skipped.push(found);
    return retentions;
  };
}

/** Merges the definition's periods with the defaults. Returns undefined if a period is invalid. */
export function policyOf(
  key: DefinitionKey,
  overrides: NonNullable<FormDefinition['retention']>,
  defaults: Retention,
): Policy | undefined {
  const period = (name: keyof Retention) => {
    const text = overrides[name];
    return text === undefined ? defaults[name] : parseDuration(text);
  };
  const [warnBefore, lockAfter, deleteAfter] = [period('warnBefore'), period('lockAfter'), period('deleteAfter')];
  if (warnBefore === undefined || lockAfter === undefined || deleteAfter === undefined) return undefined;
  // With a warning period that is not shorter than `lockAfter`, applicants would get a warning as soon as they create a
  // draft.
  const ignoresWarning = warnBefore >= lockAfter && warnBefore > 0;
  const retention = { warnBefore: ignoresWarning ? 0 : warnBefore, lockAfter, deleteAfter };
  return { ...key, retention, ...(ignoresWarning && { ignoresWarning }) };
}
