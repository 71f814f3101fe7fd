// `npm run test:pages`: tests every page and state in the system's Chromium, also those that `npm test` leaves out.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const project = join(import.meta.dirname, '../..');
const vitest = join(project, 'node_modules/vitest/vitest.mjs');

const child = spawn(process.execPath, [vitest, 'run', 'test/pages', ...process.argv.slice(2)], {
  cwd: project,
  env: { ...process.env, FORMGATE_ALL_PAGES: '1' },
  stdio: 'inherit',
});
child.on('exit', (code) => process.exit(code ?? 1));
