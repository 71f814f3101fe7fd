// How the platform server behaves in this test run. `PLATFORM_BEHAVIOUR=reference npx vitest run …` runs any suite against
// the behaviour of the reference implementation (docs/platform.md), with times that suit tests.

export const isReferenceRun = process.env.PLATFORM_BEHAVIOUR === 'reference';

/** Environment variables of a platform server with its own behaviour. */
export const ownBehaviour = { PLATFORM_BEHAVIOUR: 'default' };

/**
 * Environment variables of a platform server that behaves like the reference implementation. Its caches last for
 * moments, because a test creates tenants, definitions and types right before it uses them.
 */
export const referenceBehaviour = {
  PLATFORM_BEHAVIOUR: 'reference',
  REFERENCE_CACHE: 'PT0.05S',
  REFERENCE_EVENT_TIME: 'PT0.01S',
};

/** The part of a platform server's environment that chooses its behaviour in this run. */
export const behaviourOfRun: Record<string, string> = isReferenceRun ? referenceBehaviour : {};
