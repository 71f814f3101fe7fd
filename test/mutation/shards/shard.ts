// A shard: modules that are mutated together, and the tests that must notice the changes.

export interface Shard {
  /** Files that are mutated. */
  modules: readonly string[];
  /** Test files that run against each mutant. */
  tests: readonly string[];
  /** True if the tests need the Postgres server of `test/support/global-setup.ts`. */
  needsPostgres?: true;
}
