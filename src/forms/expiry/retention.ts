// Reads how long the forms of each definition are kept. A definition that cannot be read is named with the reason and
// gets no period: its forms are left alone, because nobody can say that they are not to be kept for longer. One
// definition never holds up another.
import type { Configuration } from '../../platform/configuration.ts';
import { isOutage } from '../../platform/platform-error.ts';
import { parseDuration } from '../../service/operations/config.ts';
import { createDefinitionSource } from '../definitions/source.ts';
import type { Policy, Retention } from './expiry.ts';

export interface DefinitionKey {
  /** URN */
  tenantId: string;
  definitionId: string;
}

/**
 * - `missing`: the tenant has no such definition
 * - `invalid`: it is not as a form definition must be
 * - `unreadable`: the configuration service did not tell
 */
export type SkipReason = 'missing' | 'invalid' | 'unreadable';

export interface SkippedDefinition extends DefinitionKey {
  reason: SkipReason;
  error?: unknown;
}

export interface Retentions {
  policies: Policy[];
  skipped: SkippedDefinition[];
}

/** Periods as a definition writes them: ISO 8601 durations. */
interface RetentionOverrides {
  warnBefore?: string | undefined;
  lockAfter?: string | undefined;
  deleteAfter?: string | undefined;
}

export interface RetentionReaderOptions {
  configuration: Pick<Configuration, 'activeOrLatest'>;
  defaults: Retention;
}

/** Definitions read at once. */
const width = 8;

export function createRetentionReader({ configuration, defaults }: RetentionReaderOptions) {
  const source = createDefinitionSource(configuration);

  async function read({ tenantId, definitionId }: DefinitionKey): Promise<Policy | SkippedDefinition> {
    const key = { tenantId, definitionId };
    try {
      const definition = await source.find(tenantId, definitionId, { permission: false });
      if (!definition) return { ...key, reason: 'missing' };
      const retention = retentionOf(definition.retention, defaults);
      return retention ? { ...key, retention } : { ...key, reason: 'invalid' };
    } catch (error) {
      return { ...key, reason: isOutage(error) ? 'unreadable' : 'invalid', error };
    }
  }

  /** In the order of the keys. Never rejects. */
  return async function readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions> {
    const retentions: Retentions = { policies: [], skipped: [] };
    for (let start = 0; start < keys.length; start += width)
      for (const found of await Promise.all(keys.slice(start, start + width).map(read)))
        if ('retention' in found) retentions.policies.push(found);
        else retentions.skipped.push(found);
    return retentions;
  };
}

/** The defaults with a definition's own periods; undefined when one of those cannot be used. */
function retentionOf(overrides: RetentionOverrides | null | undefined, defaults: Retention): Retention | undefined {
  const period = (name: keyof Retention) => {
    const text = overrides?.[name];
    return text === undefined ? defaults[name] : parseDuration(text);
  };
  const [warnBefore, lockAfter, deleteAfter] = [period('warnBefore'), period('lockAfter'), period('deleteAfter')];
  if (warnBefore === undefined || lockAfter === undefined || deleteAfter === undefined) return undefined;
  return { warnBefore, lockAfter, deleteAfter };
}
