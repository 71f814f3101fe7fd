// `npm run test:keycloak`: runs the token handler's suites that need an identity provider against a real Keycloak. It
// uses the Keycloak at KEYCLOAK_URL, or starts one with the script in the folder LAB. It fails if KEYCLOAK_URL is not
// set and the script does not exist.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createAdminApi, type KeycloakServer } from './admin-api.ts';
import { findKeycloak } from './find-keycloak.ts';
import { variables } from './keycloak-of-run.ts';

const project = join(import.meta.dirname, '../..');

/**
 * The suites of sign-in, registration and update, refresh, logout and back-channel logout, a client's whole life, the
 * setup, and the trial.
 */
const suites = [
  'src/token-handler/sign-in/sign-in-flow.test.ts',
  'src/token-handler/sign-in/lost-client.test.ts',
  'src/token-handler/clients/routes.test.ts',
  'src/token-handler/sessions/refresh.test.ts',
  'src/token-handler/logout/logout.test.ts',
  'src/token-handler/logout/backchannel.test.ts',
  'test/keycloak/whole-life.test.ts',
  'test/keycloak/refresh-together.test.ts',
  'test/keycloak/setup.test.ts',
  'test/keycloak/trial.test.ts',
];

async function main(): Promise<number> {
  const keycloak = await findKeycloak(process.env);
  if (keycloak === undefined) {
    process.stderr.write(
      'There is no Keycloak to test with: set KEYCLOAK_URL (such as http://127.0.0.1:8180/auth), or LAB to a folder with keycloak.sh.\n',
    );
    return 1;
  }
  // Ignore the signals: Ctrl-C also ends the tests, and this process must then stop Keycloak.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  try {
    await createAdminApi(keycloak).call('GET', '');
    return await runTests(keycloak);
  } finally {
    await keycloak.stop();
  }
}

/** Runs the files one after another, because each recreates its realms. Returns the exit code. */
function runTests({ url, username, password }: KeycloakServer): Promise<number> {
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const flags = ['--no-file-parallelism', '--testTimeout=120000', '--hookTimeout=120000'];
  const env = { [variables.url]: url, [variables.username]: username, [variables.password]: password };
  const args = [vitest, 'run', ...suites, ...flags, ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, { cwd: project, env: { ...process.env, ...env }, stdio: 'inherit' });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

process.exit(await main());
