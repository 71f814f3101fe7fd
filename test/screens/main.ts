// `npm run screens`: takes the pictures of docs/screens in the system's Chromium, and writes their indexes. The pages
// of failed sign-ins come from a real token handler, in which sign-ins really fail. The pages of the console come from
// `npm start`.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const project = join(import.meta.dirname, '../..');
const vitest = join(project, 'node_modules/vitest/vitest.mjs');

const files = [
  'test/screens/screens.test.ts',
  'test/pages/all/applicant-screens.test.ts',
  'test/pages/all/console-pages.test.ts',
  'test/pages/all/other-screens.test.ts',
];

// The tests of the pages also take the pictures, because vitest provides their database.
const child = spawn(process.execPath, [vitest, 'run', ...files, ...process.argv.slice(2)], {
  cwd: project,
  env: { ...process.env, FORMGATE_WRITE_SCREENS: '1', FORMGATE_ALL_PAGES: '1' },
  stdio: 'inherit',
});
child.on('exit', (code) => process.exit(code ?? 1));
