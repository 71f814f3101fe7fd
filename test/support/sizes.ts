// The sizes of all tests that repeat something many times. `npm test` uses the short sizes, which still exercise every
// rule. `TEST_SIZES=full` chooses the full sizes, as `.ci/run full` does. `TEST_SIZES=all` runs all test files with the
// short sizes, as .ci/run does. A variable with the name of a size overrides only that size:
// `TENANTS=5000 npx vitest run test/faults/token-handler-tenants.test.ts`.

const sizes = {
  /** Tenants that are added to a token handler while it runs. */
  TENANTS: { short: 60, full: 300 },
  /** Tenants of the test that counts series of metrics; it calls ten times as many paths. */
  SERIES_TENANTS: { short: 40, full: 150 },
  /** Proxied requests that are aborted. */
  ABORTS: { short: 300, full: 2_000 },
  /** Races between the end of a session and other changes of the same session. */
  RACES: { short: 500, full: 2_000 },
  /** Forms in the test of a reconciler run that puts 100 of them into quarantine. */
  QUARANTINE_FORMS: { short: 1_000, full: 5_000 },
  /** Drafts that become due while the test kills reconcilers. */
  EXPIRY_DRAFTS: { short: 48, full: 90 },
  /** Number of times that the test of EXPIRY_DRAFTS kills a reconciler. */
  EXPIRY_KILLS: { short: 3, full: 4 },
  /** A number n: the test kills the process before every n-th step of a request. */
  CRASH_STRIDE: { short: 12, full: 5 },
  /** Registers of the tenant in the test that reads the whole list of registers. */
  REGISTERS: { short: 250, full: 1_000 },
  /**
   * For each change of a register and each fault, the number of calls to the configuration service at which the fault
   * is tried, one call per attempt. The value 6 tries every call.
   */
  REGISTER_FAULT_CALLS: { short: 1, full: 2 },
  /** Forms of the backlog that the dispatcher delivers. */
  OUTBOX_FORMS: { short: 1_000, full: 2_000 },
  /** MiB of each large body that is proxied. */
  BODY_MIB: { short: 96, full: 96 },
  /** Seconds of the outage of Redis. */
  OUTAGE_SECONDS: { short: 8, full: 8 },
  /** Seconds of the outage of Postgres. */
  POSTGRES_OUTAGE_SECONDS: { short: 3, full: 3 },
  /** Generated bodies of form data that are stored and read back. */
  FUZZED_BODIES: { short: 10_000, full: 100_000 },
} as const satisfies Record<string, { short: number; full: number }>;

type SizeName = keyof typeof sizes;

/** True if this run uses the full sizes. */
const isFullRun = (env: NodeJS.ProcessEnv = process.env): boolean => env.TEST_SIZES === 'full';

/** True if this run includes the slow test files. */
export const runsAllFiles = (env: NodeJS.ProcessEnv = process.env): boolean =>
  isFullRun(env) || env.TEST_SIZES === 'all';

/** Returns the size `name` of this run: a positive integer. Throws if the environment contains an invalid one. */
export function sizeOf(name: SizeName, env: NodeJS.ProcessEnv = process.env): number {
  const size = Number(env[name] || sizes[name][isFullRun(env) ? 'full' : 'short']);
  if (!Number.isInteger(size) || size < 1) throw new Error(`${name} must be a positive integer`);
  return size;
}

/**
 * Returns the seed of this run's random choices: `TEST_SEED`, or a new one. Prints it, so that a run can be repeated.
 */
export function seedOfRun(file: string, env: NodeJS.ProcessEnv = process.env): number {
  const seed = Number(env.TEST_SEED || Date.now() % 1_000_000_000);
  process.stdout.write(`${file}: TEST_SEED=${seed}\n`);
  return seed;
}
