// Form services as a cluster runs them, for tests that start several, kill them, or cut their connections. All replicas
// share one platform and one database. Each replica runs in this process or in a separate one. Taps (HTTP proxies)
// record the replicas' calls to the platform.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Message } from '../../dev/mailbox/message.ts';
import { configSchema } from '../../src/forms/config.ts';
import { migrationsDirectory, startForms } from '../../src/forms/start.ts';
import { type Clock, systemClock } from '../../src/service/clock.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import type { PoolWatchPace } from '../../src/service/operations/process-readiness.ts';
import type { StartupPace } from '../../src/service/operations/startup-check.ts';
import { testServiceSecret } from './access.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';
import { failedStart } from './child-processes.ts';
import { type Launched, launchForms } from './form-process.ts';
import { anonymous, configure, permit } from './forms.ts';
import { type HttpTap, startHttpTap } from './http-tap.ts';
import { quick } from './outbox-dispatcher.ts';
import { type Answered, call, roleToken, startTestPlatform, type TestPlatform } from './platform.ts';
import { createTestDatabase } from './postgres.ts';

/**
 * The caller of a request. Each caller has roles in the tenant `demo`, except `stranger`, who has every role in the
 * other tenant.
 */
export type Caller = 'intake' | 'otherIntake' | 'admin' | 'alice' | 'stranger';

export interface Asked {
  as?: Caller;
  /** Bearer token to send instead of the token of the caller `as`. */
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface FormReplica {
  url: string;
  metricsUrl: string;
  /** Sends a request. `path` is below /form/v1/forms. */
  ask(method: string, path: string, asked?: Asked): Promise<Answered>;
  /** Returns the text of the replica's log so far. */
  logText(): string;
  close(): Promise<void>;
}

export type FormProcess = FormReplica & Omit<Launched, 'child'>;

export interface ReplicaOptions {
  env?: Record<string, string>;
  clock?: Clock;
  /** Changes to the default pace of the startup checks, which a replica makes before it is ready. */
  startup?: Partial<StartupPace>;
  /** Changes to the default intervals at which a replica checks its connection pool. */
  poolWatch?: PoolWatchPace;
}

export interface FormWorld {
  platform: TestPlatform;
  /** Pool of connections to the platform's database. */
  platformPool: pg.Pool;
  /** Pool of connections to the form service's database. */
  pool: pg.Pool;
  databaseUrl: string;
  /** Taps on the event and notification services, through which the form services call them. */
  events: HttpTap;
  notifications: HttpTap;
  token(who: Caller): string;
  start(options?: ReplicaOptions): Promise<FormReplica>;
  /** Starts a replica in a separate process, which `crash-points.ts` can kill. */
  spawn(env?: Record<string, string>): Promise<FormProcess>;
  /** Like `spawn`, for a process that may end before it listens. */
  launch(env?: Record<string, string>): Launched;
  /** Every response to `ask` so far. */
  answers: Answered[];
  close(): Promise<void>;
}

export interface FormWorldOptions {
  /** The platform server's log. */
  log?: CapturedLog;
  /** Changes to `permit`, the definition that all forms use. */
  definition?: Record<string, unknown>;
  /** `host:port` at which the platform server reaches Postgres. */
  databaseVia?: string;
  /** Environment variables of the platform server that differ from the defaults. */
  platformEnv?: Record<string, string>;
  /** The platform server's clock. */
  platformClock?: Clock;
}

const tenYears = 10 * 365 * 24 * 3600;
const roles = ['form-admin', 'intake-application'];

export async function startFormWorld(options: FormWorldOptions = {}): Promise<FormWorld> {
  const [platform, database] = await Promise.all([
    startTestPlatform({
      ...(options.log && { log: options.log.log }),
      ...(options.databaseVia !== undefined && { databaseVia: options.databaseVia }),
      ...(options.platformEnv && { env: options.platformEnv }),
      ...(options.platformClock && { clock: options.platformClock }),
    }),
    createTestDatabase(migrationsDirectory),
  ]);
  const [events, notifications, tokens] = await Promise.all([
    startHttpTap(platform.url),
    startHttpTap(platform.url),
    createTokens(platform),
    configure(platform, 'platform', 'form-service', { [permit.id]: { ...permit, ...options.definition } }),
  ]);
  const [pool, platformPool] = [connect(database.url), connect(platform.databaseUrl)];
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: database.url,
    DIRECTORY_URL: platform.directoryUrl,
    DIR_PLATFORM_EVENT_SERVICE_V1: `${events.url}/event/v1`,
    DIR_PLATFORM_NOTIFICATION_SERVICE_V1: `${notifications.url}/subscription/v1`,
    ACCESS_SERVICE_URL: platform.access.url,
    CLIENT_SECRET: testServiceSecret(platform.access.urns.service('form-service')),
    CODE_KEY: 'another key of tests with more than 32 characters',
    URN_PREFIX: platform.access.urns.prefix,
  };
  const replicas = new Set<FormReplica>();
  const endings: (() => Promise<void>)[] = [];
  const answers: Answered[] = [];
  const keep = <R extends FormReplica>(replica: R): R => {
    replicas.add(replica);
    return replica;
  };
  const asker =
    (url: string): FormReplica['ask'] =>
    async (method, path, { as, token, ...asked } = {}) => {
      const answer = await call(`${url}/form/v1/forms${path}`, {
        method,
        token: token ?? (as && tokens[as]),
        ...asked,
      });
      answers.push(answer);
      return answer;
    };
  return {
    platform,
    platformPool,
    pool,
    databaseUrl: database.url,
    events,
    notifications,
    token: (who) => tokens[who],
    answers,
    start: async (replica = {}) => keep(await startReplica({ ...env, ...replica.env }, asker, replica)),
    spawn: async (changes) => keep(await spawnReplica({ ...env, ...changes }, asker)),
    launch(changes) {
      const launched = launchForms({ ...env, ...changes });
      endings.push(launched.kill);
      return launched;
    },
    async close() {
      await Promise.all([...replicas].map((replica) => replica.close()));
      await Promise.all(endings.map((end) => end()));
      await Promise.all([pool.end(), platformPool.end(), events.close(), notifications.close()]);
      await Promise.all([platform.close(), database.drop()]);
    },
  };
}

function connect(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 4 });
  pool.on('error', () => undefined);
  return pool;
}

async function createTokens({ access }: TestPlatform): Promise<Record<Caller, string>> {
  const exp = Math.floor(Date.now() / 1000) + tenYears;
  const make = (sub: string, own: string[], options: { realm?: string; realmRoles?: string[] } = {}) =>
    roleToken(
      access,
      { 'form-service': own },
      { realm: 'demo', ...options, claims: { sub, exp, email: `${sub.replace(' ', '-')}@example.com` } },
    );
  const [intake, otherIntake, admin, alice, stranger] = await Promise.all([
    make('intake', ['intake-application']),
    make('other intake', ['intake-application']),
    make('admin', ['form-admin']),
    make('alice', [], { realmRoles: ['applicant'] }),
    make('stranger', roles, { realm: 'other', realmRoles: ['applicant', 'clerk', 'assessor'] }),
  ]);
  return { intake, otherIntake, admin, alice, stranger };
}

type Asker = (url: string) => FormReplica['ask'];

async function startReplica(
  env: Record<string, string>,
  asker: Asker,
  { clock = systemClock, startup = {}, poolWatch = {} }: ReplicaOptions,
): Promise<FormReplica> {
  const captured = captureLog('trace');
  const config = parseConfig(configSchema, env);
  const running = await startForms({ config, log: captured.log, clock, env, pace: quick, startup, poolWatch });
  await untilRegistered(captured.text);
  return {
    url: running.url,
    metricsUrl: running.metricsUrl,
    ask: asker(running.url),
    logText: captured.text,
    close: running.close,
  };
}

async function spawnReplica(env: Record<string, string>, asker: Asker): Promise<FormProcess> {
  const { child, kill, ...launched } = launchForms(env);
  const { logText } = launched;
  const { port, metricsPort } = await new Promise<{ port: string; metricsPort: string }>((resolve, reject) => {
    child.stdout?.on('data', () => {
      const { port, metricsPort } = listening.exec(logText())?.groups ?? {};
      if (port && metricsPort) resolve({ port, metricsPort });
    });
    child.once('close', () => reject(failedStart('form service', child, logText())));
  });
  const url = `http://127.0.0.1:${port}`;
  const metricsUrl = `http://127.0.0.1:${metricsPort}`;
  await untilRegistered(logText, launched.hasEnded);
  return { ...launched, url, metricsUrl, ask: asker(url), kill, close: kill };
}

/**
 * Waits for the notification type to be registered, because no notification can be sent before that. Also returns if
 * the platform cannot be reached or refuses access, for tests in which it is down. On a slow machine, calls may take
 * too long at first; the registration then repeats them.
 */
async function untilRegistered(logText: () => string, hasEnded = () => false): Promise<void> {
  const settled = /registration written|"kind":"(?:unreachable|denied|open)".*registration at the platform failed/;
  for (let waited = 0; waited < 60_000 && !settled.test(logText()) && !hasEnded(); waited += 20) await sleep(20);
}

const listening = /"port":(?<port>\d+),"metricsPort":(?<metricsPort>\d+)/;

/** Creates a draft for an applicant without an account and returns its id. */
export async function draft(replica: Pick<FormReplica, 'ask'>, address?: string): Promise<string> {
  const body = { definitionId: permit.id, applicant: anonymous(address) };
  const { status, text, body: created } = await replica.ask('POST', '', { as: 'intake', body });
  if (status !== 201) throw new Error(`The draft was not created: ${status} ${text}`);
  return (created as { id: string }).id;
}

/** Returns the code from the newest mail to an address, ignoring the mails whose ids are in `seen`. */
export async function codeFor({ mailbox }: TestPlatform, address: string, seen = new Set<string>()): Promise<string> {
  const isNew = ({ id, to, text }: Message) => !seen.has(id) && to.includes(address) && codePattern.test(text);
  return codePattern.exec((await mailbox.waitFor(isNew)).text)?.[1] ?? '';
}

const codePattern = /^\s*([A-Z0-9]{6,})\s*$/m;

/**
 * Resolves with true when the outbox has nothing left to deliver. Resolves with false as soon as `over` returns true,
 * which means that no dispatcher runs any more. Throws after `timeoutMs`.
 */
export async function drained(pool: pg.Pool, timeoutMs = 60_000, over = () => false): Promise<boolean> {
  const sql = 'SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL';
  for (const deadline = Date.now() + timeoutMs; ; ) {
    const { rows } = await pool.query<{ n: number }>(sql);
    if (rows[0]?.n === 0) return true;
    if (over()) return false;
    if (Date.now() > deadline) throw new Error(`The outbox still holds ${rows[0]?.n} rows after ${timeoutMs} ms`);
    await sleep(20);
  }
}
