// `npm run test:reference`: runs suites again on a platform server that behaves like the reference implementation
// (docs/platform.md). It runs only suites that start a platform server, because other suites cannot notice a
// difference. Of the token handler's suites, it runs only those about clients, because the token handler uses only the
// platform's configuration. With `REFERENCE=short`, it leaves out the slowest files, and suites that use the platform
// only through modules with suites of their own. Arguments are passed to vitest.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { slowestFiles } from '../support/slow-files.ts';
import { testsThatImport } from '../support/system-parts.ts';

const project = join(import.meta.dirname, '../..');
const vitest = join(project, 'node_modules/vitest/vitest.mjs');
const chosen = /^(?:src\/(?:forms|platform|token-handler\/clients)|reconciler)\//;
const indirect = /^src\/forms\/(?:addresses|forms|notices|operations|quarantine)\//;
const isLeftOut = (path: string) =>
  process.env.REFERENCE === 'short' && (slowestFiles.includes(path) || indirect.test(path));
const files = testsThatImport('test/support/platform-behaviour.ts').filter(
  (path) => chosen.test(path) && !isLeftOut(path),
);

const child = spawn(process.execPath, [vitest, 'run', ...files, ...process.argv.slice(2)], {
  cwd: project,
  env: { ...process.env, PLATFORM_BEHAVIOUR: 'reference' },
  stdio: 'inherit',
});
child.on('exit', (code) => process.exit(code ?? 1));
