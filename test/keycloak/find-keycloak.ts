// Finds a real Keycloak for a suite: the one at KEYCLOAK_URL, or one that the script keycloak.sh in the folder LAB
// starts on a free port.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { findFreePort } from '../../dev/ports.ts';
import type { KeycloakServer } from './admin-api.ts';

const project = join(import.meta.dirname, '../..');

export interface FoundKeycloak extends KeycloakServer {
  /** Stops the Keycloak if this run has started it. */
  stop(): Promise<void>;
}

/**
 * Finds or starts a Keycloak. Returns undefined if KEYCLOAK_URL is not set and the script `keycloak.sh` does not exist
 * in the folder LAB (by default `../shared/lab`). Rejects if this script fails.
 */
export async function findKeycloak(env: NodeJS.ProcessEnv): Promise<FoundKeycloak | undefined> {
  if (env.KEYCLOAK_URL) {
    const account = {
      username: env.KEYCLOAK_ADMIN || 'admin',
      password: env.KEYCLOAK_ADMIN_PASSWORD || 'admin',
    };
    return { url: env.KEYCLOAK_URL.replace(/\/+$/, ''), ...account, stop: async () => undefined };
  }
  const script = join(resolve(project, env.LAB || '../shared/lab'), 'keycloak.sh');
  if (!existsSync(script)) return undefined;
  // The new Keycloak listens on a free port, so that it does not disturb a Keycloak that is already running.
  const port = String(await findFreePort());
  const started = Date.now();
  process.stdout.write(`Starting a Keycloak on port ${port}…\n`);
  const code = await runScript(script, 'up', port);
  const stop = async () => void (await runScript(script, 'down', port));
  if (code !== 0) {
    await stop();
    throw new Error(`${script} did not start a Keycloak.`);
  }
  process.stdout.write(`Keycloak is ready after ${Math.round((Date.now() - started) / 1000)} s.\n`);
  return { url: `http://127.0.0.1:${port}/auth`, username: 'admin', password: 'admin', stop };
}

/** Runs keycloak.sh, and returns its exit code. */
function runScript(script: string, command: 'up' | 'down', port: string): Promise<number> {
  const env = { ...process.env, KC_PORT: port };
  const child = spawn('bash', [script, command], { cwd: project, env, stdio: 'inherit' });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}
