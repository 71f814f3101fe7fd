// Runs the steps of docs/platform.md unchanged, against a platform that behaves like the reference implementation and
// has no configuration for Formgate yet.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { configSchema } from '../../src/forms/config.ts';
import { migrationsDirectory, startForms } from '../../src/forms/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import { testServiceSecret } from '../support/access.ts';
import { captureLog } from '../support/captured-log.ts';
import { outputOf } from '../support/curl-shell.ts';
import { quick } from '../support/outbox-dispatcher.ts';
import { roleToken, startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { referenceBehaviour } from '../support/platform-behaviour.ts';
import { createTestDatabase } from '../support/postgres.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/platform.md'), 'utf8');
const blocks = [...page.matchAll(/^ {3}```(?<language>\w+)\n(?<text>[\s\S]*?)^ {3}```$/gm)].map(({ groups }) => ({
  language: groups?.language,
  text: (groups?.text ?? '').replaceAll(/^ {3}/gm, ''),
}));
const commands = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
/**
 * Milliseconds for which the platform's services cache data. The real services cache data for ten hours. In that time,
 * access tokens would expire before this test could see new data.
 */
const cache = 2 * 60_000;

async function startFormService({ access, directoryUrl }: TestPlatform) {
  const database = await createTestDatabase(migrationsDirectory);
  const env = {
    ...{ HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0' },
    DATABASE_URL: database.url,
    DIRECTORY_URL: directoryUrl,
    ACCESS_SERVICE_URL: access.url,
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
    CODE_KEY: 'another key of tests with more than 32 characters',
    URN_PREFIX: access.urns.prefix,
  };
  const captured = captureLog();
  const running = await startForms({ config: parseConfig(configSchema, env), log: captured.log, env, pace: quick });
  onTestFinished(async () => {
    await running.close();
    await database.drop();
  });
  return { ...running, logText: captured.text };
}

async function environmentOf({ access, directoryUrl, tenant, url }: TestPlatform): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-set-up-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const clientId = access.urns.service('form-service');
  writeFileSync(join(folder, 'secret'), testServiceSecret(clientId));
  const roles = { 'form-service': ['form-admin'], 'configuration-service': ['configuration-admin'] };
  return {
    PATH: process.env.PATH ?? '',
    ACCESS: access.url,
    DIRECTORY: directoryUrl,
    CONFIGURATION: `${url}/configuration/v2`,
    CLIENT_ID: clientId,
    CLIENT_SECRET_FILE: join(folder, 'secret'),
    TENANT: encodeURIComponent(tenant.id),
    ADMIN_TOKEN: await roleToken(access, roles, { realm: 'demo' }),
    INTAKE_TOKEN: await roleToken(access, { 'form-service': ['intake-application'] }, { realm: 'demo' }),
  };
}

it('every step of docs/platform.md does what the page says, from an empty platform on', async () => {
  let shift = 0;
  const platform = await startTestPlatform({
    env: { ...referenceBehaviour, REFERENCE_CACHE: 'PT2M', MAIL_FROM: 'permits@example.org' },
    clock: () => new Date(Date.now() + shift),
  });
  onTestFinished(() => platform.close());
  const env = await environmentOf(platform);
  const run = (command = '') => outputOf(command, { env });
  expect(commands.length).toBe(7);
  const [account, entries, sender, definition, draft, metrics, register] = commands;

  const { access_token: token } = JSON.parse(await run(account));
  env.TOKEN = token;
  const listed = (JSON.parse(await run(entries)) as { service: string }[]).map(({ service }) => service);
  const [, needed = ''] = /^\| directory \| entries for (.*?) in the namespace/m.exec(page) ?? [];
  const ofPlatform = [...needed.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '').filter((name) => !isOwn(name));
  expect(ofPlatform.length).toBe(4);
  expect(listed).toEqual(expect.arrayContaining(ofPlatform));
  expect(JSON.parse(await run(sender))).toMatchObject({
    latest: { configuration: { email: { fromEmail: 'permits@example.org' } } },
  });
  await fetch(`${platform.url}/subscription/v1/types?tenantId=${env.TENANT}`, {
    headers: { authorization: `Bearer ${token}` },
  });

  const forms = await startFormService(platform);
  Object.assign(env, { FORMS: forms.url, FORMS_METRICS: forms.metricsUrl });
  const [problems, written] = (await run(definition)).split(/(?<=\})(?=\{)/).map((text) => JSON.parse(text));
  expect(problems).toMatchObject({ problems: [] });
  expect(written).toMatchObject({ latest: { configuration: { 'first-form': { name: 'First form' } } } });
  await expect.poll(forms.logText).toContain('registration unknown to the service');
  expect(await run(metrics)).toMatch(/^formgate_platform_registration_unknown\{.*\} 1$/m);
  await expect(run(draft)).rejects.toThrow('has not read the registration');
  // The caches of the platform's services expire, so the services read the core configuration again, as they do after a
  // restart.
  shift = cache + 1_000;
  await expect.poll(() => run(draft).catch(String)).toMatch(/"sent":true,"channel":"email"/);
  await platform.mailbox.waitFor(({ to, subject }) => to.includes('you@example.org') && subject.includes('code'));
  expect(await run(metrics)).toMatch(/^formgate_platform_registration_unknown\{.*\} 0$/m);
  expect(await run(metrics)).not.toMatch(/ 1$/m);
  expect(JSON.parse(await run(register))).toMatchObject({ name: 'first-register', entries: ['one', 'two'] });
}, 120_000);

const isOwn = (service: string) => /^(form-service|token-handler)/.test(service);

it('the chart has the values of the page', () => {
  const values = parse(readFileSync(join(root, 'charts/formgate/values.yaml'), 'utf8'));
  const named = parse(blocks.find(({ language }) => language === 'yaml')?.text ?? '');
  for (const [name, value] of Object.entries(named)) {
    expect(values).toHaveProperty(name);
    if (typeof value === 'object')
      for (const inner of Object.keys(value ?? {})) expect(values[name]).toHaveProperty(inner);
  }
});
