import { defineConfig } from 'vitest/config';

// The tests that run against mutants. `npm run mutation` runs them: test/mutation/main.ts sets the variables.
const list = (name: string) => (process.env[name] ?? '').split(',').filter((each) => each !== '');

export default defineConfig({
  test: {
    include: list('FORMGATE_MUTATION_TESTS'),
    globalSetup: list('FORMGATE_MUTATION_SETUP'),
    // A mutant may leave anything behind.
    isolate: true,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A mutant may make a condition impossible.
    expect: { poll: { timeout: 10_000 } },
  },
});
