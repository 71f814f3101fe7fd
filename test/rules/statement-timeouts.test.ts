// Tests that a pool closes no connection during a statement that may still be running: the timeouts that the code sets
// are below the silence limit of their pool.
import { expect, it } from 'vitest';
import { longestCount } from '../../src/forms/expiry/count-forms.ts';
import { longestSingle } from '../../src/forms/outbox/store.ts';
import { longestChange, registerSilence } from '../../src/forms/registers/register-lock.ts';
import { statementSeconds } from '../../src/service/postgres/migrate.ts';
import { silenceLimits } from '../../src/service/postgres/silent-connections.ts';
import { changeSilence, longestClientWait } from '../../src/token-handler/clients/registration-locks.ts';
import { listFiles } from './source-files.ts';

/** The files that set timeouts on connections of a pool. */
const onPools = [
  { path: 'src/forms/expiry/count-forms.ts', timeout: longestCount, silence: silenceLimits },
  { path: 'src/forms/outbox/store.ts', timeout: longestSingle, silence: silenceLimits },
  { path: 'src/forms/registers/register-lock.ts', timeout: longestChange, silence: registerSilence },
  { path: 'src/token-handler/clients/registration-locks.ts', timeout: longestClientWait, silence: changeSilence },
];
/** These files use connections without a silence limit, or set the timeouts of the role. */
const others = ['src/service/postgres/apply-migrations.ts', 'src/service/postgres/migrate.ts'];

const setting = /(?:\bSET (?:LOCAL )?|set_config\('|['`](?=\w+=))(?:statement|lock)_timeout\b/;

it('every file that sets a timeout of statements is listed', () => {
  const found = listFiles(process.cwd(), ['src', 'reconciler'], '.ts')
    .filter(({ path, text }) => !path.endsWith('.test.ts') && setting.test(text))
    .map(({ path }) => path);
  expect(found.sort()).toEqual([...onPools.map(({ path }) => path), ...others].sort());
});

it.each(onPools)('$path sets timeouts of $timeout ms, below the silence limit of its pool', ({ timeout, silence }) => {
  expect(timeout).toBeLessThan(silence.longest);
});

it('the statement timeout of the role is below the silence limit of the other pools', () => {
  expect(statementSeconds * 1_000).toBeLessThan(silenceLimits.longest);
});
