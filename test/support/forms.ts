// A form service for a test: the real app in this process, with its own database, and with the real identity provider,
// platform server, dispatcher and a real mailbox. The test can move the form service's clock; the platform uses real
// time.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { configSchema } from '../../src/forms/config.ts';
import { migrationsDirectory, startForms } from '../../src/forms/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import { testServiceSecret } from './access.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';
import { quick } from './outbox-dispatcher.ts';
import { type Answered, call, roleToken, startTestPlatform, type TestPlatform } from './platform.ts';
import { createTestDatabase } from './postgres.ts';

/** The caller of a request. Each caller is a different subject. Its token stays valid however far the clock moves. */
export type Who = 'intake' | 'otherIntake' | 'admin' | 'alice' | 'bob' | 'clerk' | 'assessor' | 'nobody';

export interface Ask {
  as?: Who | undefined;
  /** Bearer token to send instead of the token of `as`. */
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestForms {
  url: string;
  metricsUrl: string;
  platform: TestPlatform;
  /** Pool of connections to the form service's database. */
  pool: pg.Pool;
  databaseUrl: string;
  log: CapturedLog;
  /** Moves the form service's clock forward. */
  advance(milliseconds: number): void;
  now(): Date;
  token(who: Who): string;
  /** Issues a token with these roles of the form service, in the tenant's realm by default. */
  tokenWith(options: TokenOptions): Promise<string>;
  /** Sends a request. `path` is below /form/v1/forms. */
  ask(method: string, path: string, options?: Ask): Promise<Answered>;
  /** Creates a draft and returns its id. Drafts of an intake application have the applicant `<random>@example.org`. */
  draft(options?: { as?: Who; definitionId?: string; applicant?: object }): Promise<string>;
  /** Requests a code and reads it from the mailbox. */
  code(formId: string): Promise<string>;
  /** Sets a form's status directly in the database, as the reconciler does when it locks a draft. */
  setStatus(formId: string, status: string): Promise<void>;
  /**
   * Writes a definition into the tenant's `platform:form-service`, and moves the clock forward by six minutes, so that
   * the form service reads it.
   */
  define(definition: { id: string } & Record<string, unknown>): Promise<void>;
  close(): Promise<void>;
}

export interface TokenOptions {
  roles?: string[];
  realmRoles?: string[];
  realm?: string;
  subject?: string;
  claims?: Record<string, unknown>;
}

/**
 * A definition for every kind of caller: applicants without an account, and the roles `applicant`, `clerk` and
 * `assessor`.
 */
export const permit = {
  id: 'permit',
  name: 'Permit',
  anonymousApply: true,
  applicantRoles: ['applicant'],
  clerkRoles: ['clerk'],
  assessorRoles: ['assessor'],
  oneFormPerApplicant: false,
  dataSchema: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0 } },
  },
};

const people: Record<Who, TokenOptions> = {
  intake: { roles: ['intake-application'] },
  otherIntake: { roles: ['intake-application'] },
  admin: { roles: ['form-admin'] },
  alice: { realmRoles: ['applicant'], claims: { name: 'Alice', email: 'Alice@Example.com' } },
  bob: { realmRoles: ['applicant'], claims: { name: 'Bob', email: 'bob@example.com' } },
  clerk: { realmRoles: ['clerk'], claims: { name: 'Clara Clerk' } },
  assessor: { realmRoles: ['assessor'], claims: { name: 'Asa Assessor' } },
  nobody: {},
};

const yearsInSeconds = 10 * 365 * 24 * 3600;

export interface TestFormsOptions {
  /**
   * Seconds for which tokens of service accounts are valid. They expire by the form service's clock, which a test can
   * move.
   */
  coreTokenLifetime?: number;
  /** Environment variables that differ from the defaults, such as `DIR_…` addresses of a service behind a proxy. */
  env?(platform: TestPlatform): Record<string, string> | Promise<Record<string, string>>;
}

export async function startTestForms(options: TestFormsOptions = {}): Promise<TestForms> {
  const { coreTokenLifetime } = options;
  const [platform, database] = await Promise.all([
    startTestPlatform(coreTokenLifetime === undefined ? {} : { coreTokenLifetime }),
    createTestDatabase(migrationsDirectory),
  ]);
  const { access } = platform;
  const log = captureLog();
  let moved = 0;
  const clock = () => new Date(Date.now() + moved);
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: database.url,
    DIRECTORY_URL: platform.directoryUrl,
    ACCESS_SERVICE_URL: access.url,
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
    CODE_KEY: 'another key of tests with more than 32 characters',
    URN_PREFIX: access.urns.prefix,
    ...(await options.env?.(platform)),
  };
  const config = parseConfig(configSchema, env);
  const running = await startForms({ config, log: log.log, clock, env, pace: quick });
  const { pool } = database;

  const tokenWith = ({ roles = [], realmRoles = [], realm = 'demo', subject = randomUUID(), claims }: TokenOptions) =>
    roleToken(
      access,
      { 'form-service': roles },
      {
        realm,
        realmRoles,
        claims: { sub: subject, exp: Math.floor(Date.now() / 1000) + yearsInSeconds, ...claims },
      },
    );
  const names = Object.keys(people) as Who[];
  const made = await Promise.all(names.map((who) => tokenWith({ subject: who, ...people[who] })));
  const tokens = Object.fromEntries(names.map((who, index) => [who, made[index]])) as Record<Who, string>;

  const ask: TestForms['ask'] = (method, path, { as, token, body, headers } = {}) =>
    call(`${running.url}/form/v1/forms${path}`, {
      method,
      token: token ?? (as && tokens[as]),
      body,
      ...(headers && { headers }),
    });

  const forms: TestForms = {
    url: running.url,
    metricsUrl: running.metricsUrl,
    platform,
    pool,
    databaseUrl: database.url,
    log,
    advance(milliseconds) {
      moved += milliseconds;
    },
    now: clock,
    token: (who) => tokens[who],
    tokenWith,
    ask,
    async draft({ as = 'intake', definitionId = permit.id, applicant } = {}) {
      const given = applicant ?? (as.toLowerCase().includes('intake') ? anonymous() : undefined);
      const { status, text, body } = await ask('POST', '', { as, body: { definitionId, applicant: given } });
      if (status !== 201) throw new Error(`The draft was not created: ${status} ${text}`);
      return (body as { id: string }).id;
    },
    async code(formId) {
      const before = new Set(platform.mailbox.messages().map(({ id }) => id));
      const { status, text } = await ask('POST', `/${formId}`, { as: 'intake', body: { operation: 'send-code' } });
      if (status !== 202) throw new Error(`The code was not sent: ${status} ${text}`);
      const { rows } = await pool.query<{ address: string }>(
        "SELECT applicant -> 'channels' -> 0 ->> 'address' AS address FROM forms WHERE id = $1",
        [formId],
      );
      const message = await platform.mailbox.waitFor(
        ({ id, to, text }) => !before.has(id) && to.includes(rows[0]?.address ?? '') && codePattern.test(text),
      );
      return codePattern.exec(message.text)?.[1] ?? '';
    },
    async setStatus(formId, status) {
      const sets = status === 'Locked' ? 'locked = $3' : status === 'Draft' ? 'locked = NULL' : 'submitted = $3';
      await pool.query(`UPDATE forms SET status = $2, ${sets} WHERE id = $1 AND $3::timestamptz IS NOT NULL`, [
        formId,
        status,
        clock(),
      ]);
    },
    async define(definition) {
      await configure(platform, 'platform', 'form-service', { [definition.id]: definition });
      // The service caches definitions for at most five minutes, because they decide on access.
      moved += 6 * 60_000;
    },
    async close() {
      await running.close();
      await Promise.all([platform.close(), database.drop()]);
    },
  };
  await forms.define(permit);
  await untilRegistered(platform);
  return forms;
}

const codePattern = /^\s*([A-Z0-9]{6,})\s*$/m;

/** Returns an applicant without an account, with a unique address by default. */
export function anonymous(address = `${randomUUID()}@example.org`): object {
  return { addressAs: 'Ana', channels: [{ channel: 'email', address }] };
}

/** Merges an update into a configuration of the test's tenant, with a configuration administrator's token. */
export async function configure(
  { access, tenant, url }: Pick<TestPlatform, 'access' | 'tenant' | 'url'>,
  namespace: string,
  name: string,
  update: Record<string, unknown>,
): Promise<void> {
  const token = await roleToken(access, { 'configuration-service': ['configuration-admin'] }, { realm: 'core' });
  const query = `?tenantId=${encodeURIComponent(tenant.id)}`;
  const { status, text } = await call(`${url}/configuration/v2/configuration/${namespace}/${name}${query}`, {
    method: 'PATCH',
    token,
    body: { operation: 'UPDATE', update },
  });
  if (status !== 200) throw new Error(`The configuration was not written: ${status} ${text}`);
}

/**
 * Waits until the form service has registered its notification type, because no applicant can be subscribed before
 * that. The form service registers the type in the background.
 */
async function untilRegistered({ access, tenant, url }: TestPlatform): Promise<void> {
  const token = await roleToken(access, { 'notification-service': ['subscription-admin'] }, { realm: 'core' });
  const type = `${url}/subscription/v1/types/form-status-updates?tenantId=${encodeURIComponent(tenant.id)}`;
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
    if ((await call(type, { token })).status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('The form service did not register its type of notices.');
}
