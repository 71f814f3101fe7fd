// How the platform server behaves in this test run. `PLATFORM_BEHAVIOUR=reference npx vitest run …` runs any suite
// against the behaviour of the reference implementation (docs/platform.md), with times that suit tests.

/**
 * True if this run chooses the behaviour of the reference implementation, or runs its register suites against a real
 * configuration service.
 */
export const isReferenceRun =
  process.env.PLATFORM_BEHAVIOUR === 'reference' || process.env.REGISTER_SUITE_CONFIGURATION_URL !== undefined;

/** Environment variables of a platform server with its default behaviour. */
export const ownBehaviour = { PLATFORM_BEHAVIOUR: 'default' };

/**
 * Environment variables of a platform server that behaves like the reference implementation. The caches have short
 * lifetimes, because a test creates tenants, definitions and types right before using them.
 */
export const referenceBehaviour = {
  PLATFORM_BEHAVIOUR: 'reference',
  REFERENCE_CACHE: 'PT0.05S',
  REFERENCE_EVENT_TIME: 'PT0.01S',
};

/** The part of a platform server's environment that chooses the server's behaviour in this run. */
export const behaviourOfRun: Record<string, string> = isReferenceRun ? referenceBehaviour : {};

/**
 * Runs `work` for all items concurrently. In a reference run, runs `work` for one item after the other, because there,
 * concurrent changes of one document overwrite each other.
 */
export async function togetherOrInTurn<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  if (!isReferenceRun) await Promise.all(items.map(work));
  else for (const item of items) await work(item);
}
