// Runs the steps of the trial in docs/operations.md unchanged, with a real Keycloak. Processes of this machine stand in
// for the cluster: a fake kubectl stores the Secret, and the last step runs the script of `helm test`.
// test/cluster/trial.test.ts runs the same steps on a cluster.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import express from 'express';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { platformSeed } from '../../dev/demo-data/demo-data.ts';
import { createGateway } from '../../dev/gateway.ts';
import { listen } from '../../dev/listen.ts';
import { openMessageStore } from '../../dev/mailbox/message-store.ts';
import { findFreePort } from '../../dev/ports.ts';
import { configSchema as formsSchema } from '../../src/forms/config.ts';
import { startForms } from '../../src/forms/start.ts';
import { configSchema as platformSchema } from '../../src/platform-server/config.ts';
import { startPlatformServer } from '../../src/platform-server/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import { configSchema as tokenHandlerSchema } from '../../src/token-handler/config.ts';
import { startTokenHandler } from '../../src/token-handler/start.ts';
import { captureLog } from '../support/captured-log.ts';
import { startTestMailbox } from '../support/mailbox.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';
import { createTrialShell, trialBlocks } from '../support/trial-steps.ts';
import type { KeycloakServer } from './admin-api.ts';
import { keycloakOfRun } from './keycloak-of-run.ts';
import { removeTrialRealms } from './trial-realms.ts';

const root = join(import.meta.dirname, '../..');
const values = parse(readFileSync(join(root, 'charts/formgate/examples/trial.yaml'), 'utf8'));
const keycloak = keycloakOfRun() as KeycloakServer;

/** Cleanup functions, called in reverse order. */
const opened: (() => unknown)[] = [];
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-trial-'));
  opened.push(() => rmSync(folder, { recursive: true }));
  await removeTrialRealms(keycloak, { areOurs: false });
  opened.push(() => removeTrialRealms(keycloak, { areOurs: true }));
});
afterAll(async () => {
  for (const close of opened.reverse()) await close();
});

/**
 * A fake kubectl with the commands that docs/operations.md uses: it stores the applied Secret, and prints a key of this
 * Secret.
 */
const kubectl = `#!/usr/bin/env node
const { existsSync, readFileSync, copyFileSync } = require('node:fs');
const { parse } = require(${JSON.stringify(join(root, 'node_modules/yaml'))});
const args = process.argv.slice(2).join(' ');
const [, file] = /apply -f (\\S+)$/.exec(args) ?? [];
const [, key] = /get secret formgate-keycloak .*index .data "([^"]+)"/.exec(args) ?? [];
const kept = __dirname + '/secret.yaml';
if (file) copyFileSync(file, kept);
else if (key) process.stdout.write(parse(readFileSync(kept, 'utf8')).stringData[key]);
else if (args !== 'create namespace formgate') throw new Error(args);
`;

function createShell(site: string) {
  writeFileSync(join(folder, 'kubectl'), kubectl, { mode: 0o755 });
  const env = { SITE: site, KEYCLOAK: keycloak.url, KEYCLOAK_PASSWORD: keycloak.password };
  return createTrialShell({ cwd: root, env, programs: [folder] });
}

const keycloakSecret = (key: string): string =>
  parse(readFileSync(join(folder, 'secret.yaml'), 'utf8')).stringData[key] ?? '';

async function startStack(port: number): Promise<{ forms: string; tokenHandler: string; codes(): Promise<unknown> }> {
  const [mailbox, redis] = [await startTestMailbox(), await startTestRedis()];
  opened.push(
    () => mailbox.close(),
    () => redis.close(),
  );
  const urls = {
    platformServer: `http://127.0.0.1:${await findFreePort()}`,
    forms: `http://127.0.0.1:${await findFreePort()}`,
    tokenHandler: `http://127.0.0.1:${await findFreePort()}`,
  };
  const seed = join(folder, 'seed.json');
  const { directory } = platformSeed(urls) as { directory: object[] };
  writeFileSync(seed, JSON.stringify({ tenants: values.platformServer.seed.tenants, directory }));
  const environment = async (url: string, secret: string, settings: Record<string, string>) => {
    const database = await createTestDatabase();
    opened.push(() => database.drop());
    return {
      ...{ HOST: '127.0.0.1', PORT: new URL(url).port, METRICS_PORT: '0', DATABASE_URL: database.url },
      ACCESS_SERVICE_URL: keycloak.url,
      DIRECTORY_URL: `${urls.platformServer}/directory/v2`,
      CLIENT_SECRET: secret === '' ? 'none' : keycloakSecret(secret),
      CODE_KEY: 'a key of tests with more than 32 characters',
      KEY_RING: `one:${Buffer.alloc(32, 1).toString('base64')}`,
      ...settings,
    };
  };
  const { log } = captureLog();
  const mail = { SMTP_URL: mailbox.url, MAIL_FROM: values.platformServer.mailFrom, SEED_FILE: seed };
  const platformEnv = await environment(urls.platformServer, '', mail);
  const started = await startPlatformServer({
    config: parseConfig(platformSchema, platformEnv),
    log,
    env: platformEnv,
  });
  opened.push(() => started.close());
  const formsEnv = await environment(urls.forms, 'forms', {});
  const forms = await startForms({ config: parseConfig(formsSchema, formsEnv), log, env: formsEnv });
  opened.push(() => forms.close());
  const insecure = String(values.tokenHandler.allowInsecureRedirectUris);
  const settings = { REDIS_URL: redis.url, SESSION_COOKIE: 'formgate_session', ALLOW_INSECURE_REDIRECT_URIS: insecure };
  const handlerEnv = await environment(urls.tokenHandler, 'token-handler', settings);
  const config = parseConfig(tokenHandlerSchema, handlerEnv);
  const handler = await startTokenHandler({ config, log, env: handlerEnv });
  opened.push(() => handler.close());
  const gateway = createGateway({
    ...{ access: express(), messages: await openMessageStore(undefined), targets: urls, parts: async () => ({}) },
    publicUrl: `http://localhost:${port}`,
  });
  const listening = await listen(gateway.app, port);
  opened.push(() => listening.close());
  return {
    forms: urls.forms,
    tokenHandler: urls.tokenHandler,
    codes: () => mailbox.waitFor(({ to, subject }) => to.includes('you@example.org') && subject.includes('code')),
  };
}

it('every step does what the page says, from a Keycloak that knows nothing of Formgate', async () => {
  const port = await findFreePort();
  const site = `http://localhost:${port}`;
  const run = createShell(site);
  const blocks = trialBlocks();
  expect(blocks.length).toBe(6);
  const [addresses, setup, install, client, definition, test] = blocks;
  for (const name of ['SITE', 'KEYCLOAK', 'KEYCLOAK_PASSWORD']) expect(addresses).toContain(`export ${name}=`);

  const output = join(root, 'formgate-keycloak.yaml');
  opened.push(() => rmSync(output, { force: true }));
  expect(await run(setup)).toContain('demo: created the client demo-script');
  rmSync(output);

  expect(install).toContain('-f charts/formgate/examples/trial.yaml');
  const { codes, ...direct } = await startStack(port);
  await run(client);
  const drafted = await run(definition);
  expect(drafted).toContain('"sent":true');
  await codes();

  expect(test).toBe('helm test formgate -n formgate --logs\n');
  const { person, ...signIn } = values.tests.signIn;
  const { usernameKey, passwordKey } = person.existingSecret;
  const callbackUrl = signIn.callbackUrl.replace(`https://${values.ingress.hosts[0]}`, site);
  const question = {
    url: site,
    host: '',
    signIn: { ...signIn, callbackUrl },
    register: {},
    person: folder,
    access: keycloak.url,
    direct,
  };
  const file = join(folder, 'question.json');
  writeFileSync(file, JSON.stringify(question));
  writeFileSync(join(folder, 'username'), keycloakSecret(usernameKey));
  writeFileSync(join(folder, 'password'), keycloakSecret(passwordKey));
  const script = join(root, 'charts/formgate/files/test.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [script, file]);
  expect(stdout).toContain('passed  tester@example.org signs in with permits-web and calls the target forms');
  expect(stdout).not.toContain('failed');
}, 240_000);
