// Everything that honest users and adversaries use: Postgres, Redis, an OpenID provider, a mailbox, and two replicas of
// each process behind a front, with two tenants, a form definition and a registered client.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { listen } from '../../../dev/listen.ts';
import { findFreePort } from '../../../dev/ports.ts';
import { startTestAccess, type TestAccess } from '../../support/access.ts';
import { startTestMailbox, type TestMailbox } from '../../support/mailbox.ts';
import type { Addresses } from './addresses.ts';
import { createDatabases, type Databases } from './databases.ts';
import type { EdgePorts } from './edge.ts';
import { environmentsOf, type Surroundings, seedOf } from './environments.ts';
import { configureTenants, createTokens } from './preparation.ts';
import { startRestartingRedis } from './redis.ts';
import { type Exit, type Replica, type ReplicaPlace, type Service, startReplica } from './replica.ts';
import { signIn } from './sign-in.ts';

/** The connections that the processes open, each named after the server at its other end. */
export type Link =
  | `${keyof Databases['urls']} database`
  | ('identity provider' | 'mail server' | 'platform services' | 'upstream');

export interface World {
  addresses: Addresses;
  mailbox: TestMailbox;
  replicas: Replica[];
  /** Calls the listener for each unexpected exit of a replica. */
  onExit(listener: (exit: Exit) => void): void;
  /** Keeps the logs of the replicas, and returns their folder. */
  keepLogs(): string;
  close(): Promise<void>;
}

/** Number of sessions of Mallory, an adversary in the honest tenant. Each session has its own rate limit. */
const sessions = 6;

const services: Service[] = ['platform-server', 'forms', 'token-handler'];

/** Settings for other suites, such as how the processes reach the servers that they need. */
export interface Wiring {
  /** Starts Redis. `env` contains the settings that tell the token handler where Redis is. */
  startRedis(): Promise<{ port: number; env: Record<string, string>; close(): Promise<unknown> }>;
  /** Returns the port at which the processes reach the server that listens on `port`. */
  reach(link: Link, port: number): Promise<number>;
  /** Lifetime of the access tokens of the realm `demo`, in seconds. */
  demoTokenLifetime?: number;
  /** Additional environment variables of each service's processes. */
  env?: Partial<Record<Service, Record<string, string>>>;
  /** Prefix of the database names. */
  name: string;
}

const directly: Wiring = {
  startRedis: async () => {
    const { port, close } = await startRestartingRedis();
    return { port, env: { REDIS_URL: `redis://127.0.0.1:${port}` }, close };
  },
  reach: async (_link, port) => port,
  name: 'adversary',
};

/** Starts the world. `administratorUrl` is the URL of a Postgres on which databases may be created. */
export async function startWorld(administratorUrl: string, wiring: Wiring = directly): Promise<World> {
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    return await startParts(administratorUrl, wiring, closing, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function startParts(
  administratorUrl: string,
  wiring: Wiring,
  closing: (() => Promise<unknown>)[],
  close: () => Promise<void>,
): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), `formgate-${wiring.name}-`));
  let keepsLogs = false;
  closing.push(async () => keepsLogs || rm(folder, { recursive: true, force: true }));
  const [databases, access, mailbox, redis] = await Promise.all([
    createDatabases(administratorUrl, wiring.name),
    startTestAccess({
      front: (port) => wiring.reach('identity provider', port),
      ...(wiring.demoTokenLifetime !== undefined && { demoTokenLifetime: wiring.demoTokenLifetime }),
    }),
    startTestMailbox(),
    wiring.startRedis(),
  ]);
  closing.push(databases.drop, access.close, mailbox.close, redis.close);
  const tenants = await addPeople(access);
  const mailCounts = await listen((request, response) => {
    const to = new URL(request.url ?? '/', 'http://mailbox').searchParams.get('to') ?? '';
    response.end(String(mailbox.messages().filter((message) => message.to === to).length));
  });
  closing.push(mailCounts.close);
  const places = await placeReplicas();
  const { worker, ports } = await startEdge(places);
  closing.push(() => worker.terminate());

  const around: Surroundings = {
    ...{ access, redisEnv: redis.env, smtpUrl: `smtp://127.0.0.1:${await wiring.reach('mail server', mailbox.port)}` },
    databases: await reachDatabases(databases.urls, wiring),
    edge: {
      ...ports,
      upstream: await wiring.reach('upstream', ports.upstream),
      'platform-server': await wiring.reach('platform services', ports['platform-server']),
    },
    seedFile: join(folder, 'seed.json'),
    hostileUpstreamPort: await findFreePort(),
    stuckTlsPort: await findFreePort(),
    deadPort: await findFreePort(),
  };
  await writeFile(around.seedFile, JSON.stringify(seedOf(around, tenants)));
  const environments = environmentsOf(around);
  const exits: Exit[] = [];
  const listeners: ((exit: Exit) => void)[] = [(exit) => exits.push(exit)];
  const replicas = places.map((place) =>
    startReplica({
      place,
      env: { ...environments[place.service], ...wiring.env?.[place.service] },
      logFile: join(folder, `${place.name}.log`),
      onExit: (exit) => {
        for (const listener of listeners) listener(exit);
      },
    }),
  );
  closing.push(() => Promise.all(replicas.map((replica) => replica.stop())));
  await untilPrepared(replicas, exits);

  const fronts = Object.fromEntries(
    services.map((service) => [service, `http://127.0.0.1:${ports[service]}`]),
  ) as Addresses['fronts'];
  const site = fronts['token-handler'];
  await configureTenants({ access, fronts, tenants });
  const addresses: Addresses = {
    fronts,
    replicas: Object.groupBy(places.map(describePlace), ({ service }) => service) as Addresses['replicas'],
    databases: { ...databases.urls, names: databases.names, administrator: administratorUrl },
    redisPort: redis.port,
    tenants,
    tokens: await createTokens(access),
    mallory: await Promise.all(Array.from({ length: sessions }, () => signIn(site, 'mallory@example.com'))),
    trudy: await signIn(site, 'trudy@example.com', 'Other Town'),
    hostileUpstreamPort: around.hostileUpstreamPort,
    stuckTlsPort: around.stuckTlsPort,
    reconcilerEnv: environments.reconciler,
    mailCountUrl: `http://127.0.0.1:${mailCounts.port}/`,
  };
  return {
    ...{ addresses, mailbox, replicas, close },
    onExit: (listener) => void listeners.push(listener),
    keepLogs() {
      keepsLogs = true;
      return folder;
    },
  };
}

async function reachDatabases<T extends Record<string, string>>(urls: T, { reach }: Wiring): Promise<T> {
  const reached = Object.entries(urls).map(async ([name, direct]) => {
    const url = new URL(direct);
    url.port = String(await reach(`${name as keyof Databases['urls']} database`, Number(url.port)));
    return [name, url.href];
  });
  return Object.fromEntries(await Promise.all(reached));
}

/** Adds the people: the honest users and Mallory to the realm `demo`, Trudy to the realm `other`. */
async function addPeople(access: TestAccess): Promise<Addresses['tenants']> {
  await access.addRealm('other');
  const person = (name: string) => ({ email: `${name}@example.com`, name, password: name });
  for (const name of ['mallory', 'bob', 'carol', 'dave', 'erin', 'frank'])
    await access.addUser('demo', { ...person(name), roles: { realm: ['applicant'] } });
  await access.addUser('other', person('trudy'));
  return {
    honest: { id: access.urns.tenant('65f0c2a9e4b0a1d2c3f4a5b6'), name: 'Demo', realm: 'demo' },
    hostile: { id: access.urns.tenant('65f0c2a9e4b0a1d2c3f4a5b7'), name: 'Other Town', realm: 'other' },
  };
}

async function placeReplicas(): Promise<ReplicaPlace[]> {
  const places: ReplicaPlace[] = [];
  for (const service of services)
    for (const index of [0, 1]) {
      const [port, metricsPort] = [await findFreePort(), await findFreePort()];
      places.push({ service, name: `${service}-${index}`, port, metricsPort });
    }
  return places;
}

const describePlace = ({ service, port, metricsPort }: ReplicaPlace) => ({
  service,
  url: `http://127.0.0.1:${port}`,
  metricsUrl: `http://127.0.0.1:${metricsPort}`,
});

async function startEdge(places: ReplicaPlace[]): Promise<{ worker: Worker; ports: EdgePorts }> {
  const worker = new Worker(new URL('./edge.ts', import.meta.url), {
    workerData: Object.groupBy(places, ({ service }) => service),
  });
  const ports = await new Promise<EdgePorts>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  return { worker, ports };
}

/**
 * Milliseconds that the replicas may take to start. A busy machine takes minutes to compile the code of six processes.
 */
const longestStart = 300_000;
const mostRestarts = 3;

async function untilPrepared(replicas: Replica[], exits: Exit[]): Promise<void> {
  for (const deadline = Date.now() + longestStart; ; await delay(100)) {
    const prepared = await Promise.all(replicas.map((replica) => replica.prepared()));
    // Waits until the fronts have noticed that the replicas are ready. The fronts check readiness twice per second.
    if (prepared.every(Boolean)) return void (await delay(700));
    // On a busy machine, a replica may exit because it waits too long for the migrations of the other replica. The
    // exited replica is then restarted.
    const exit = exits.at(mostRestarts);
    if (exit) throw new Error(`${exit.replica} did not start (${exit.how}): ${exit.lastWords}`);
    if (Date.now() > deadline) throw new Error(`The replicas are not prepared after ${longestStart / 1_000} s.`);
  }
}
