// `npm run test:pages -- [files]`: tests every page and state in the system's Chromium, including those that `npm test`
// leaves out. `files` are substrings of test file paths; by default, all files run. With `VIEWS=short`, tests each page
// in fewer views (selection.ts).
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const project = join(import.meta.dirname, '../..');
const vitest = join(project, 'node_modules/vitest/vitest.mjs');

const args = process.argv.slice(2);
const files = args.some((argument) => !argument.startsWith('-')) ? [] : ['test/pages'];
const child = spawn(process.execPath, [vitest, 'run', ...files, ...args], {
  cwd: project,
  env: { ...process.env, FORMGATE_ALL_PAGES: '1' },
  stdio: 'inherit',
});
child.on('exit', (code) => process.exit(code ?? 1));
