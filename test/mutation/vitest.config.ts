import { defineConfig } from 'vitest/config';

const list = (name: string) => (process.env[name] ?? '').split(',').filter((each) => each !== '');

// For test/mutation/main.ts, which sets the variables.
export default defineConfig({
  test: {
    include: list('FORMGATE_MUTATION_TESTS'),
    globalSetup: list('FORMGATE_MUTATION_SETUP'),
    // A property test that fails needs no smallest counterexample here, and the seed must not decide about a mutant.
    setupFiles: [],
    isolate: true,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A mutant may make a condition impossible: the first failed poll is enough.
    expect: { poll: { timeout: 10_000 } },
  },
});
