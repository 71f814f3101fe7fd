// Tests concurrent changes on two replicas that share only the database and the configuration service.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import {
  type RegisterBackend,
  type Replica,
  type ReplicaOptions,
  startRegisterBackend,
} from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let replicas: [Replica, Replica];
let place: { tenantId: string };

beforeAll(async () => {
  backend = await startRegisterBackend();
  replicas = [await backend.start(), await backend.start()];
  place = { tenantId: backend.tenant.id };
});

afterAll(() => backend.close());

const pathOf = (name: string) => `/${encodeURIComponent(name)}`;
const patchBody = (label: string) => ({ description: label, entries: [label, label] });
const of = (index: number): Replica => replicas[index % 2 === 0 ? 0 : 1];

async function create(): Promise<string> {
  const name = backend.newName();
  const response = await of(0).request('POST', '', {
    body: { name, description: 'first', entries: ['first', 'first'] },
  });
  expect(response.status).toBe(201);
  return name;
}

async function read(name: string) {
  const { body } = await of(0).request('GET', pathOf(name));
  return body as { description: string; entries: string[] };
}

async function withSlowReplica(
  { scripted, ...options }: ReplicaOptions & FaultProxyOptions,
  work: (slow: Replica, proxy: FaultProxy) => Promise<void>,
) {
  const { origin, pathname } = new URL(backend.configurationUrl);
  const proxy = await startFaultProxy(origin, { ...(scripted && { scripted }) });
  try {
    await work(await backend.start({ ...options, configurationUrl: `${proxy.url}${pathname}` }), proxy);
  } finally {
    await proxy.close();
  }
}

describe('Concurrent patches by two administrators on two replicas', () => {
  it('both succeed; the register is what one of them wrote, never a mixture', async () => {
    const name = await create();
    for (let round = 0; round < 15; round += 1) {
      const labels = [`a${round}`, `b${round}`];
      const responses = await Promise.all(
        labels.map((label, index) => of(index).request('PATCH', pathOf(name), { body: patchBody(label) })),
      );
      for (const [index, response] of responses.entries()) {
        expect(response.status).toBe(200);
        expect(response.body).toMatchObject(patchBody(labels[index] ?? ''));
      }
      const { description, entries } = await read(name);
      expect(labels).toContain(description);
      expect(entries).toEqual([description, description]);
    }
  });

  it('twenty patches of one register all succeed, and the register is what one of them wrote', async () => {
    const name = await create();
    const labels = Array.from({ length: 20 }, (_, index) => `label ${index}`);
    const responses = await Promise.all(
      labels.map((label, index) => of(index).request('PATCH', pathOf(name), { body: patchBody(label) })),
    );
    expect(responses.map(({ status }) => status)).toEqual(labels.map(() => 200));
    const { description, entries } = await read(name);
    expect(entries).toEqual([description, description]);
  });

  it('the pin moves to the entries that were written last', async () => {
    const name = await create();
    await backend.revisions.create('data-register', name, place);
    await backend.configuration.setActiveRevision('data-register', name, 0, place);
    await Promise.all(
      [0, 1].map((index) => of(index).request('PATCH', pathOf(name), { body: patchBody(`p${index}`) })),
    );
    const { latest, active } = await backend.configuration.read('data-register', name, place);
    expect(active).toEqual(latest);
    const { description, entries } = await read(name);
    expect(entries).toEqual([description, description]);
  });
});

describe('Two concurrent creates of one register', () => {
  it('one returns 201 and the other 409, and the register is the one of the 201', async () => {
    for (let round = 0; round < 15; round += 1) {
      const name = backend.newName();
      const responses = await Promise.all(
        ['a', 'b'].map((label, index) => of(index).request('POST', '', { body: { name, ...patchBody(label) } })),
      );
      expect(responses.map(({ status }) => status).sort()).toEqual([201, 409]);
      const winner = responses.findIndex(({ status }) => status === 201) === 0 ? 'a' : 'b';
      expect(await read(name)).toMatchObject(patchBody(winner));
    }
  });
});

describe('A delete concurrent with a patch', () => {
  it('leaves a complete register or none', async () => {
    for (let round = 0; round < 10; round += 1) {
      const name = await create();
      const [removed, patched] = await Promise.all([
        of(0).request('DELETE', pathOf(name)),
        of(1).request('PATCH', pathOf(name), { body: patchBody('x') }),
      ]);
      expect(removed.status).toBe(204);
      expect([200, 404]).toContain(patched.status);
      const { latest } = await backend.configuration.read('data-register', name, place);
      const { latest: definitions } = await backend.configuration.read('platform', 'configuration-service', place);
      expect(latest).toBeUndefined();
      expect(definitions?.configuration).not.toHaveProperty([`data-register:${name}`]);
    }
  });
});

describe('Concurrent creates and deletes of different registers', () => {
  it('lose no definition, though all are in one document', async () => {
    const names = Array.from({ length: 12 }, () => backend.newName());
    const send = (method: string) =>
      Promise.all(
        names.map((name, index) =>
          method === 'POST'
            ? of(index).request('POST', '', { body: { name, ...patchBody(name) } })
            : of(index).request('DELETE', pathOf(name)),
        ),
      );
    expect((await send('POST')).map(({ status }) => status)).toEqual(names.map(() => 201));
    for (const name of names) expect((await read(name)).description).toBe(name);
    expect((await send('DELETE')).map(({ status }) => status)).toEqual(names.map(() => 204));
  });
});

describe('Waiting for the lock', () => {
  it('a change that waits too long gets 503 with Retry-After and changes nothing; reads do not wait', () =>
    withSlowReplica({ timeoutMs: 3_000 }, async (slow, proxy) => {
      const name = await create();
      const waiting = await backend.start({ waitMs: 300 });
      await proxy.break('hang', { at: 3, times: 1 });
      const hung = slow.request('PATCH', pathOf(name), { body: patchBody('hung') });
      await expect.poll(() => proxy.calls.length).toBe(3);
      const refused = await waiting.request('PATCH', pathOf(name), { body: patchBody('refused') });
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('5');
      expect(await read(name)).toMatchObject(patchBody('first'));
      expect((await hung).status).toBe(502);
      expect((await of(0).request('PATCH', pathOf(name), { body: patchBody('after') })).status).toBe(200);
      expect(await read(name)).toMatchObject(patchBody('after'));
    }));

  it('changes that hang hold few connections: form requests and other registers still get some', () =>
    withSlowReplica({ timeoutMs: 1_500, connections: 4 }, async (slow, proxy) => {
      const names: string[] = [];
      for (let count = 0; count < 8; count += 1) names.push(await create());
      await proxy.break('hang', { at: 1 });
      const hung = names.map((name) => slow.request('PATCH', pathOf(name), { body: patchBody('hung') }));
      await expect.poll(() => proxy.calls.length).toBeGreaterThanOrEqual(4);
      expect(slow.pool.totalCount).toBe(2);
      expect((await slow.pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
      expect(new Set((await Promise.all(hung)).map(({ status }) => status))).toEqual(new Set([502]));
      await proxy.heal();
      await expect
        .poll(async () => (await slow.request('PATCH', pathOf(names[0] ?? ''), { body: patchBody('x') })).status)
        .toBe(200);
    }));

  it('many patches of one register on one replica use one connection', async () => {
    const replica = await backend.start();
    const name = await create();
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => replica.request('PATCH', pathOf(name), { body: patchBody(`${index}`) })),
    );
    expect(replica.pool.totalCount).toBe(1);
  });
});

describe('The database', () => {
  it('an unreachable database is 503 with Retry-After for changes; reads do not need it', async () => {
    const pool = new pg.Pool({
      connectionString: 'postgres://nobody@127.0.0.1:9/none',
      connectionTimeoutMillis: 1_000,
    });
    onTestFinished(() => pool.end());
    const replica = await backend.start({ pool });
    const name = await create();
    const response = await replica.request('PATCH', pathOf(name), { body: patchBody('x') });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('5');
    expect((await replica.request('GET', pathOf(name))).body).toMatchObject(patchBody('first'));
  });

  it('a lost lock is 503: no further step starts, the process continues, and a repeat works', () =>
    withSlowReplica({}, async (slow, proxy) => {
      const name = await create();
      await proxy.break('late response', { at: 1, times: 2 });
      const change = slow.request('PATCH', pathOf(name), { body: patchBody('x') });
      await expect.poll(() => proxy.calls.length).toBe(2);
      await terminateLockHolders();
      expect((await change).status).toBe(503);
      expect(proxy.calls).toHaveLength(2);
      expect(await read(name)).toMatchObject(patchBody('first'));
      expect((await slow.request('PATCH', pathOf(name), { body: patchBody('y') })).status).toBe(200);
      expect(await read(name)).toMatchObject(patchBody('y'));
    }));

  it('a lock that is lost while the entries are written is 503 that says so, because they are published', async () => {
    const beforeWrite = async ({ method }: { method?: string | undefined }) => {
      if (method === 'PATCH') await terminateLockHolders();
      return undefined;
    };
    await withSlowReplica({ scripted: beforeWrite }, async (slow) => {
      const name = await create();
      const { status, headers, body } = await slow.request('PATCH', pathOf(name), { body: patchBody('x') });
      expect({ status, ...(body as object) }).toMatchObject({ status: 503, written: ['the entries'] });
      expect(headers.get('retry-after')).toBe('5');
      expect(await read(name)).toMatchObject({ description: 'first', entries: ['x', 'x'] });
    });
  });
});

async function terminateLockHolders(): Promise<void> {
  const client = new pg.Client({ connectionString: backend.lockUrl });
  await client.connect();
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  await client.end();
}
