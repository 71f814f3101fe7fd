import { defineConfig } from 'vitest/config';

// The tests that run against mutants. `npm run mutation` runs them: test/mutation/main.ts sets the environment
// variables that name the tests.
const list = (name: string) => (process.env[name] ?? '').split(',').filter((each) => each !== '');

export default defineConfig({
  test: {
    include: list('FORMGATE_MUTATION_TESTS'),
    globalSetup: list('FORMGATE_MUTATION_SETUP'),
    setupFiles: ['test/support/subset-tester.ts'],
    // A mutant may leave changed state behind, which must not affect the next file.
    isolate: true,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // This timeout is shorter than in vitest.config.ts, because a mutant may make a condition impossible.
    expect: { poll: { timeout: 10_000 } },
  },
});
