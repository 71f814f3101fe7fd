// `npm run test:keycloak`: runs the token handler's suites that need an identity provider against a real Keycloak. It
// uses the one at KEYCLOAK_URL, or starts one with the script in LAB. Without either it fails.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { findFreePort } from '../../dev/listen.ts';
import { createAdminApi, type KeycloakServer } from './admin-api.ts';
import { variables } from './keycloak-of-run.ts';

const project = join(import.meta.dirname, '../..');

/** Sign-in, registration and update, refresh, logout and back-channel logout, a client's whole life, the setup, and the trial. */
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

interface Found extends KeycloakServer {
  stop(): Promise<void>;
}

async function main(): Promise<number> {
  const keycloak = await findKeycloak(process.env);
  if (keycloak === undefined) {
    process.stderr.write(
      'There is no Keycloak to test with: set KEYCLOAK_URL (such as http://127.0.0.1:8180/auth), or LAB to a folder with keycloak.sh.\n',
    );
    return 1;
  }
  // Ctrl-C also reaches the tests. When they have ended, Keycloak is stopped.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  try {
    await createAdminApi(keycloak).call('GET', '');
    return await runTests(keycloak);
  } finally {
    await keycloak.stop();
  }
}

async function findKeycloak(env: NodeJS.ProcessEnv): Promise<Found | undefined> {
  if (env.KEYCLOAK_URL) {
    const account = {
      username: env.KEYCLOAK_ADMIN || 'admin',
      password: env.KEYCLOAK_ADMIN_PASSWORD || 'admin',
    };
    return { url: env.KEYCLOAK_URL.replace(/\/+$/, ''), ...account, stop: async () => undefined };
  }
  const script = join(resolve(project, env.LAB || '../shared/lab'), 'keycloak.sh');
  if (!existsSync(script)) return undefined;
  // A free port, so that a running Keycloak is not affected.
  const port = String(await findFreePort());
  const started = Date.now();
  process.stdout.write(`Starting a Keycloak on port ${port}…\n`);
  const code = await run('bash', [script, 'up'], { KC_PORT: port });
  const stop = async () => void (await run('bash', [script, 'down'], { KC_PORT: port }));
  if (code !== 0) {
    await stop();
    throw new Error(`${script} did not start a Keycloak.`);
  }
  process.stdout.write(`It is ready after ${Math.round((Date.now() - started) / 1000)} s.\n`);
  return { url: `http://127.0.0.1:${port}/auth`, username: 'admin', password: 'admin', stop };
}

/** Runs one file after the other, because each recreates its realms. */
function runTests({ url, username, password }: KeycloakServer): Promise<number> {
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const flags = ['--no-file-parallelism', '--testTimeout=60000', '--hookTimeout=120000'];
  const env = { [variables.url]: url, [variables.username]: username, [variables.password]: password };
  return run(process.execPath, [vitest, 'run', ...suites, ...flags, ...process.argv.slice(2)], env);
}

/** Returns the exit code. */
function run(program: string, args: string[], env: Record<string, string>): Promise<number> {
  const child = spawn(program, args, { cwd: project, env: { ...process.env, ...env }, stdio: 'inherit' });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

process.exit(await main());
