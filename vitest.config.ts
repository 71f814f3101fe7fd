import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { keycloakOfRun } from './test/keycloak/keycloak-of-run.ts';
import { withoutCluster } from './test/kubernetes/cluster-of-run.ts';
import { withoutAllPages } from './test/pages/selection.ts';
import { LongFilesFirst } from './test/support/long-files-first.ts';
import { listSecondTries } from './test/support/second-tries.ts';
import { runsAllFiles } from './test/support/sizes.ts';
import { withoutSlowFiles } from './test/support/slow-files.ts';
import { endStalledRun } from './test/support/stalled-run.ts';
import { leftOut } from './test/support/system-parts.ts';

export default defineConfig({
  plugins: [endStalledRun(), listSecondTries()],
  test: {
    include: ['{src,reconciler,dev,test,web}/**/*.test.ts'],
    // The excluded files need a cluster (npm run test:kubernetes, npm run test:cluster) or take long (npm run
    // test:pages, npm run test:incidents).
    exclude: [
      ...['**/node_modules/**', 'test/fixtures/**', 'test/{chart,cluster,incidents}/**'],
      ...[...withoutCluster(), ...withoutAllPages(), ...withoutSlowFiles(), ...leftOut()],
      // CI runs the long form of these tests: npm run test:adversary.
      ...(runsAllFiles() ? ['test/adversary/**'] : []),
      // These tests run the code of an older version: npm run test:upgrades.
      'test/upgrades/{make-dump,side-by-side,restore}.test.ts',
      // These tests need a real Keycloak: npm run test:keycloak.
      ...(keycloakOfRun() ? [] : ['test/keycloak/{setup,trial}.test.ts']),
    ],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['leaks', 'log-checks', 'page-reports', 'subset-tester'].map((name) => `test/support/${name}.ts`),
    // Tests mostly wait for timers, sockets and processes, so there may be more workers than processors.
    maxWorkers: 4,
    sequence: { sequencer: LongFilesFirst },
    // The test files of a worker share the modules that they import. That is safe, because importing a module has no
    // side effects, and modules keep no state that affects the next file (decision 0027).
    isolate: false,
    // The processes that tests start inherit this variable, and share the compile cache.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/formgate') },
    // Other test files may keep the machine busy for longer than the default timeout of one second. A long timeout
    // costs nothing if the condition becomes true.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
