// Tests when pods leave and rejoin a load balancer: two form services behind a load balancer that follows /readyz,
// while Postgres is down, busy, or unreachable for one of the pods.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { type Answered, call } from '../support/platform.ts';
import { sizeOf } from '../support/sizes.ts';
import { startTcpGate, type TcpGate } from '../support/tcp-gate.ts';
import { until } from '../support/until.ts';

/** Duration of the Postgres outage in milliseconds. */
const outage = sizeOf('POSTGRES_OUTAGE_SECONDS') * 1_000;
const startup = { patience: 800, firstRetry: 50, longestRetry: 100 };
let world: FormWorld;
/** TCP proxies. Each replica reaches Postgres through its own proxy. */
let gates: TcpGate[];
let replicas: FormReplica[];
beforeAll(async () => {
  world = await startFormWorld();
  gates = await Promise.all([1, 2].map(() => startTcpGate(Number(new URL(world.databaseUrl).port))));
  replicas = await Promise.all(gates.map((gate) => world.start({ env: { DATABASE_URL: through(gate) } })));
  for (const replica of replicas) await until('a ready replica', async () => (await readiness(replica)).ready);
});
afterAll(async () => {
  await world.close();
  await Promise.all(gates.map((gate) => gate.close()));
});
afterEach(() => Promise.all(gates.map((gate) => gate.open())));

function through(gate: TcpGate): string {
  const url = new URL(world.databaseUrl);
  url.host = `127.0.0.1:${gate.port}`;
  return url.href;
}

interface Readiness {
  ready: boolean;
  waitingFor: Record<string, string>;
}

const readiness = async (replica: FormReplica) => (await call(`${replica.metricsUrl}/readyz`)).body as Readiness;
const replicaAt = (index: number) => replicas[index] as FormReplica;
const save = (replica: FormReplica, id: string) =>
  replica.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });

/** Locks a form's row as another transaction would. Returns a function that releases the lock. */
async function lock(id: string): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: world.databaseUrl });
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM forms WHERE id = $1 FOR UPDATE', [id]);
  return () => holder.end();
}

const noPod = 'no pod is ready';
type Balanced = Answered | typeof noPod;

/** Sends a request to a pod that is ready, as a load balancer does. Fails if no pod is ready. */
async function balanced(ask: (replica: FormReplica) => Promise<Answered>): Promise<Balanced> {
  const ready = await Promise.all(replicas.map(async (replica) => (await readiness(replica)).ready));
  const candidates = replicas.filter((_replica, index) => ready[index]);
  const chosen = candidates[Math.floor(Math.random() * candidates.length)];
  return chosen ? ask(chosen) : noPod;
}

/** Sends requests for some milliseconds, at most four concurrently, and returns the responses. */
async function load(milliseconds: number, ask: (replica: FormReplica) => Promise<Answered>) {
  const seen: Balanced[] = [];
  const end = performance.now() + milliseconds;
  const caller = async () => {
    for (; performance.now() < end; await delay(50)) seen.push(await balanced(ask));
  };
  await Promise.all([caller(), caller(), caller(), caller()]);
  return seen;
}

describe('while Postgres is down for all replicas', () => {
  it('requests get 503 from a pod and not from the load balancer, registers can be read, and no pod is restarted', async () => {
    const id = await draft(replicaAt(0));
    await Promise.all(gates.map((gate) => gate.shut()));
    const registers = (replica: FormReplica) =>
      call(`${replica.url}/form/v1/registers`, { token: world.token('admin') });
    const [saves, reads] = await Promise.all([load(outage, (replica) => save(replica, id)), load(outage, registers)]);
    expect(saves.length).toBeGreaterThan(4);
    for (const response of saves) {
      expect(response).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:unavailable' } });
      expect(Number((response as Answered).headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect([...new Set(reads.map((response) => (response === noPod ? response : response.status)))]).toEqual([200]);
    for (const replica of replicas) expect((await call(`${replica.metricsUrl}/livez`)).status).toBe(200);
    await Promise.all(gates.map((gate) => gate.open()));
    for (const replica of replicas) await expect.poll(async () => (await save(replica, id)).status).toBe(200);
  });
});

describe('a pod', () => {
  it('whose saves all wait for the same locked form stays ready', async () => {
    const replica = replicaAt(0);
    const id = await draft(replica);
    const unlock = await lock(id);
    const saves = Promise.all(Array.from({ length: 12 }, () => save(replica, id)));
    for (let nth = 0; nth < 40; nth += 1) {
      expect(await readiness(replica)).toMatchObject({ ready: true });
      await delay(50);
    }
    await unlock();
    await saves;
  });

  it('whose connections to Postgres hang gets no requests until they are replaced', async () => {
    const gate = gates[0] as TcpGate;
    // With these settings, the checks of the connection pool notice the hanging connections before a statement times
    // out. On a busy machine, a new connection takes longer than a few hundred milliseconds.
    const poolWatch = { interval: 1_000, patience: 1_500 };
    const replica = await world.start({ env: { DATABASE_URL: through(gate) }, poolWatch });
    onTestFinished(() => replica.close());
    await until('readiness', async () => (await readiness(replica)).ready);
    const id = await draft(replica);
    const unlock = await lock(id);
    // Two concurrent saves open two connections. If the pool had a single connection, the first check would repair it.
    const saves = [save(replica, id), save(replica, id)];
    await delay(500);
    await unlock();
    expect((await Promise.all(saves)).map(({ status }) => status)).toEqual([200, 200]);
    gate.strand();
    await expect
      .poll(() => readiness(replica), { interval: 50 })
      .toMatchObject({ ready: false, waitingFor: { database_pool: expect.stringContaining('pool fails') } });
    const metrics = call(`${replica.metricsUrl}/metrics`);
    expect(await readiness(replicaAt(1))).toMatchObject({ ready: true });
    expect((await metrics).text).toContain('formgate_unready{reason="database_pool"} 1');
    await expect.poll(() => readiness(replica)).toMatchObject({ ready: true });
    expect((await save(replica, id)).status).toBe(200);
  });

  it.each([
    ['CLIENT_SECRET', () => ({ CLIENT_SECRET: 'a wrong secret' }), 'check CLIENT_ID and CLIENT_SECRET'],
    [
      'ACCESS_SERVICE_PUBLIC_URL',
      () => ({ ACCESS_SERVICE_PUBLIC_URL: 'https://id.example.org' }),
      'check ACCESS_SERVICE_PUBLIC_URL',
    ],
    ['ACCESS_SERVICE_URL', () => ({ ACCESS_SERVICE_URL: new URL(world.platform.access.url).origin }), 'check it'],
  ] as const)('that starts with a wrong %s never becomes ready, and logs the reason', async (_name, env, why) => {
    // On a busy machine, the identity provider can take more than a second to answer. A pod that gets no answer within
    // the patience becomes ready.
    const patience = 3_000;
    const wrong = await world.start({ env: env(), startup: { ...startup, patience } });
    onTestFinished(() => wrong.close());
    await expect
      .poll(() => readiness(wrong))
      .toMatchObject({ ready: false, waitingFor: { identity_provider: expect.stringContaining(why) } });
    await delay(patience + 300);
    expect(await readiness(wrong)).toMatchObject({ ready: false });
    expect((await call(`${wrong.metricsUrl}/readyz`)).status).toBe(503);
    expect((await call(`${wrong.metricsUrl}/livez`)).status).toBe(200);
    expect(wrong.logText()).toContain(why);
    expect(wrong.logText()).not.toContain('a wrong secret');
  });

  it('that starts without a reachable identity provider becomes ready only after the maximum wait', async () => {
    const env = { ACCESS_SERVICE_URL: 'http://127.0.0.1:9/auth', ACCESS_SERVICE_PUBLIC_URL: world.platform.access.url };
    const started = performance.now();
    const late = await world.start({ env, startup });
    onTestFinished(() => late.close());
    await expect.poll(() => readiness(late), { interval: 20 }).toMatchObject({ ready: true });
    expect(performance.now() - started).toBeGreaterThan(startup.patience);
  });

  it('whose event loop was blocked for seconds gets no requests for a while, and is not restarted', async () => {
    const replica = replicaAt(0);
    expect(await readiness(replica)).toMatchObject({ ready: true });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_800);
    expect(await readiness(replica)).toMatchObject({
      ready: false,
      waitingFor: { event_loop: expect.stringContaining('blocked') },
    });
    expect((await call(`${replica.metricsUrl}/livez`)).status).toBe(200);
  });
});
