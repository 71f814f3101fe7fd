// Runs the product for incidents: the processes of `npm start`, with a gate before each dependency. A gate is a TCP
// proxy that can imitate the faults of production: nothing listens, or nothing responds.
import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAccess } from '../../dev/access/open-access.ts';
import { platformSeed, waitForNotices, writeDemoData } from '../../dev/demo-data/demo-data.ts';
import { createGateway, type Gateway } from '../../dev/gateway.ts';
import { listen } from '../../dev/listen.ts';
import { openMailbox } from '../../dev/mailbox/mailbox.ts';
import { findFreePort } from '../../dev/ports.ts';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { type SupervisedChild, superviseChild } from '../../dev/processes/child-process.ts';
import { processEnvironments } from '../../dev/processes/environments.ts';
import { openSecrets } from '../../dev/secrets.ts';
import { createStopStack, type StopStack } from '../../dev/stop-stack.ts';
import { systemClock } from '../../src/service/clock.ts';
import { createUrns } from '../../src/service/urn.ts';
import { noticeLogs } from '../support/captured-log.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startTcpGate, type TcpGate } from '../support/tcp-gate.ts';

export const jobs = ['forms', 'token-handler', 'platform-server'] as const;
export type Job = (typeof jobs)[number];

export type Gates = Record<'redis' | 'formsPostgres' | 'identityProvider' | 'mail' | 'platform' | 'target', TcpGate>;

export interface World {
  publicUrl: string;
  gates: Gates;
  redis: TestRedis;
  /** URLs of the databases. Connections to them bypass the gates. */
  databaseUrls: { forms: string; tokenHandler: string; platform: string };
  metricsPorts: Record<Job, number>;
  /** Requests a token of the realm `demo`. */
  token(clientId: string): Promise<string>;
  /** Runs the reconciler once. The variables in `env` are added to its environment. */
  reconcile(env?: Record<string, string>): Promise<void>;
  stop(job: Job): Promise<void>;
  start(job: Job): Promise<void>;
  /** The environment of each process. Changes apply when the process is started again. */
  settings: Record<Job, Record<string, string>>;
  /** Folder for files of an incident. */
  folder: string;
  /** Returns the process id of a running job. */
  pidOf(job: Job): Promise<number>;
  close(): Promise<void>;
}

/** Seconds for which access tokens are valid. */
export const accessTokenLifetime = 20;

const project = join(import.meta.dirname, '../..');
const urlOf = (port: number) => `http://127.0.0.1:${port}`;
const portOf = (url: string) => Number(new URL(url).port);

export async function startWorld(): Promise<World> {
  const stack = createStopStack();
  const folder = await mkdtemp(join(tmpdir(), 'formgate-incidents-'));
  // If root runs this, Postgres runs as another account, which must be able to enter the folder.
  await chmod(folder, 0o755);
  await stack.add(async () => {
    await rm(await placePostgres(join(folder, 'postgres')), { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  });
  try {
    return await assemble(folder, stack);
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

async function assemble(folder: string, stack: StopStack): Promise<World> {
  let gateway: Gateway | undefined;
  const door = await listen((req, res) => (gateway ? gateway.app(req, res) : res.writeHead(503).end()));
  await stack.add(door.close);
  const publicUrl = `http://localhost:${door.port}`;
  const secrets = await openSecrets(join(folder, 'secrets.json'));
  const redis = await startTestRedis();
  await stack.add(redis.close);
  const postgres = await startPostgres({
    directory: join(folder, 'postgres'),
    password: await secrets.get('postgres'),
    settings: { fsync: 'off' },
  });
  await stack.add(postgres.stop);
  const mailbox = await openMailbox({ clock: systemClock });
  await stack.add(mailbox.close);
  const urns = createUrns('urn:example');
  const access = await openAccess({
    databaseUrl: await postgres.ensureDatabase('access'),
    publicUrl: `${publicUrl}/auth`,
    cookieKey: 'a cookie key of incidents',
    urns,
    serviceSecret: (clientId) => secrets.get(`client:${clientId}`),
    // The lifetime is short, so that sessions are refreshed during an incident.
    accessTokenLifetime,
  });
  await stack.add(access.close);

  const place = async (database: string) => ({
    databaseUrl: await postgres.ensureDatabase(database),
    port: await findFreePort(),
    metricsPort: await findFreePort(),
  });
  const places = {
    forms: await place('forms'),
    tokenHandler: await place('token_handler'),
    platformServer: await place('platform'),
  };
  const gates: Gates = {
    redis: await startTcpGate(redis.port),
    formsPostgres: await startTcpGate(portOf(postgres.url)),
    identityProvider: await startTcpGate(portOf(access.url)),
    mail: await startTcpGate(mailbox.port),
    platform: await startTcpGate(places.platformServer.port),
    target: await startTcpGate(places.forms.port),
  };
  for (const gate of Object.values(gates)) await stack.add(gate.close);
  const behind = (url: string, gate: TcpGate) => Object.assign(new URL(url), { port: String(gate.port) }).href;
  const directory = join(folder, 'logs');
  await mkdir(directory);
  const seedFile = join(folder, 'seed.json');
  const platformUrl = urlOf(gates.platform.port);
  const seeded = {
    platformServer: platformUrl,
    forms: urlOf(gates.target.port),
    tokenHandler: urlOf(places.tokenHandler.port),
  };
  await writeFile(seedFile, JSON.stringify(platformSeed(seeded)));
  const environments = await processEnvironments({
    ...{
      urns,
      secrets,
      seedFile,
      publicUrl,
      smtpPort: gates.mail.port,
      redisUrl: `redis://127.0.0.1:${gates.redis.port}`,
    },
    ...places,
    accessUrl: behind(access.url, gates.identityProvider),
  });
  const ports = {
    ...{ forms: places.forms, 'token-handler': places.tokenHandler, 'platform-server': places.platformServer },
  };
  const settings: Record<Job, Record<string, string>> = {
    'platform-server': environments.platformServer,
    forms: {
      ...environments.forms,
      DATABASE_URL: behind(places.forms.databaseUrl, gates.formsPostgres),
      DIRECTORY_URL: `${platformUrl}/directory/v2`,
      // The form service serves no pages, because they would have to be built first.
      PAGES: '',
    },
    'token-handler': {
      ...environments.tokenHandler,
      ...{ DIRECTORY_URL: `${platformUrl}/directory/v2`, UPSTREAM_TIMEOUT: 'PT4S', SIGN_IN_LIMIT: '100000' },
    },
  };
  const children = new Map<Job, SupervisedChild>();
  const start = async (job: Job) => {
    const child = superviseChild({
      ...{ name: job, env: settings[job], logFile: join(directory, `${job}.log`), onDeath: () => undefined },
      main: join(project, 'src', job, 'main.ts'),
      readyUrl: `${urlOf(ports[job].metricsPort)}/readyz`,
    });
    children.set(job, child);
    await child.ready;
  };
  const stop = async (job: Job) => children.get(job)?.stop();
  await stack.add(async () => {
    for (const job of jobs) await stop(job);
    await noticeLogs(directory);
  });
  gateway = createGateway({
    ...{ publicUrl, access: access.app, messages: mailbox.messages, parts: async () => ({}) },
    targets: {
      platformServer: urlOf(places.platformServer.port),
      forms: urlOf(places.forms.port),
      tokenHandler: urlOf(places.tokenHandler.port),
    },
  });
  const token = (clientId: string) => access.token('demo', clientId);
  const administrator = await token('demo-admin');
  const platform = { url: urlOf(places.platformServer.port), token: administrator };
  await start('platform-server');
  await writeDemoData({ ...platform, urns, publicUrl });
  await start('forms');
  await waitForNotices(platform);
  await start('token-handler');
  return {
    ...{ publicUrl, gates, redis, token, start, settings, folder },
    databaseUrls: {
      ...{ forms: places.forms.databaseUrl, tokenHandler: places.tokenHandler.databaseUrl },
      platform: places.platformServer.databaseUrl,
    },
    metricsPorts: {
      ...{ forms: places.forms.metricsPort, 'token-handler': places.tokenHandler.metricsPort },
      'platform-server': places.platformServer.metricsPort,
    },
    reconcile: (more = {}) => run({ ...environments.reconciler, ...more }),
    stop: async (job) => stop(job),
    pidOf: (job) => pidOf(ports[job].metricsPort),
    close: () => stack.stop(),
  };
}

function run(env: Record<string, string>): Promise<void> {
  const child = spawn(process.execPath, [join(project, 'reconciler/main.ts')], {
    env: { PATH: process.env.PATH, ...env },
    stdio: 'ignore',
  });
  return new Promise((done) => child.once('exit', () => done()));
}

/**
 * Finds a process by the METRICS_PORT in its environment, because the supervisor of `npm start` does not report process
 * ids.
 */
async function pidOf(metricsPort: number): Promise<number> {
  const { readdir } = await import('node:fs/promises');
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(`METRICS_PORT=${metricsPort}`)) return Number(name);
  }
  throw new Error(`no process has the metrics port ${metricsPort}`);
}
