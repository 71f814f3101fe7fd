// Reads how long the forms of each definition are kept. If a definition was removed, the default periods apply. A
// definition that cannot be read is skipped with a reason. The forms of a skipped definition do not expire, because
// they may have to be kept for longer. A problem with one definition does not affect other definitions. A few failing
// definitions can open the circuit breaker of the configuration service, which then prevents reads of the others. Each
// prevented read is therefore repeated once, after the circuit breaker lets a call through again.
import { setTimeout as sleep } from 'node:timers/promises';
import { circuitReset } from '../../platform/circuit.ts';
import type { Configuration } from '../../platform/configuration.ts';
import { isPlatformOutage, mayConcernOneCall, PlatformError } from '../../platform/platform-error.ts';
import { forEachConcurrent } from '../../service/for-each-concurrent.ts';
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
  /**
   * `invalid`: the definition cannot be used. `failing`: the configuration service failed for this definition, but not
   * for all, for example because the document is too large or the tenant was removed. `unreadable`: the configuration
   * service is down, or another service failed.
   */
  reason: 'invalid' | 'failing' | 'unreadable';
  error?: unknown;
}

export interface Retentions {
  policies: Policy[];
  skipped: SkippedDefinition[];
}

export interface RetentionReaderOptions {
  configuration: Pick<Configuration, 'activeOrLatest'>;
  defaults: Retention;
  /** Milliseconds to wait before repeating the reads that an open circuit breaker prevented. */
  pause?: number;
}

/** Maximum number of concurrent reads of definitions. */
const width = 8;

type Found = Policy | SkippedDefinition;

export function createRetentionReader(options: RetentionReaderOptions) {
  // After this pause, an open circuit breaker lets a read through.
  const { configuration, defaults, pause = circuitReset + 100 } = options;
  const source = createDefinitionSource(configuration);

  async function read({ tenantId, definitionId }: DefinitionKey): Promise<Found> {
    const key = { tenantId, definitionId };
    try {
      const definition = await source.find(tenantId, definitionId, { permission: false });
      // A definition that was removed gets the default periods. Otherwise, its forms would stay forever.
      const policy = policyOf(key, definition?.retention ?? {}, defaults);
      return policy ?? { ...key, reason: 'invalid' };
    } catch (error) {
      return { ...key, reason: reasonOf(error), error };
    }
  }

  /** Reads the definitions, and puts the results into `found`. */
  const readAll = (keys: readonly DefinitionKey[], found: Map<DefinitionKey, Found>) =>
    forEachConcurrent(keys, width, async (key) => found.set(key, await read(key)));

  /** Repeats the reads that an open circuit prevented. */
  async function readAgain(found: Map<DefinitionKey, Found>): Promise<void> {
    const prevented = [...found].filter(([, result]) => isPrevented(result)).map(([key]) => key);
    if (prevented.length === 0) return;
    await sleep(pause);
    // Definitions of a tenant with failed reads are read last, because they may open the circuit again.
    const failed = [...found.values()].filter((result) => 'reason' in result && !isPrevented(result));
    const suspects = new Set(failed.map(({ tenantId }) => tenantId));
    const isSuspect = ({ tenantId }: DefinitionKey) => suspects.has(tenantId);
    const [first, ...others] = [...prevented.filter((key) => !isSuspect(key)), ...prevented.filter(isSuspect)];
    // The circuit lets a single call through. If this call succeeds, the circuit closes.
    if (first) await readAll([first], found);
    await readAll(others, found);
  }

  /** Returns the policies and the skipped definitions in the order of the keys. The promise never rejects. */
  return async function readRetentions(keys: readonly DefinitionKey[]): Promise<Retentions> {
    const found = new Map<DefinitionKey, Found>(keys.map((key) => [key, { ...key, reason: 'unreadable' }]));
    await readAll(keys, found);
    await readAgain(found);
    const results = [...found.values()];
    const policies = results.filter((result) => 'retention' in result);
    const skipped = results.filter((result) => 'reason' in result);
    // If the configuration service fails for all definitions, it is down.
    const isDown = results.every((result) => 'reason' in result && result.reason !== 'invalid');
    return { policies, skipped: isDown ? skipped.map((one) => ({ ...one, reason: 'unreadable' })) : skipped };
  };
}

function reasonOf(error: unknown): SkippedDefinition['reason'] {
  if (!isPlatformOutage(error)) return 'invalid';
  return error.service === 'configuration' && mayConcernOneCall(error) ? 'failing' : 'unreadable';
}

const isPrevented = (result: Found) =>
  'error' in result && result.error instanceof PlatformError && result.error.kind === 'open';

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
