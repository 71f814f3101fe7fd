import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answered,
  call,
  roleToken,
  startTestPlatform,
  type TestPlatform,
} from '../../../test/support/platform.ts';

let platform: TestPlatform;
let base: string;
let admin: string;
let core: string;
let reader: string;
let database: pg.Pool;

const role = (...roles: string[]) => ({ 'configuration-service': roles });
const send = (method: string, path: string, body?: unknown, token = admin) =>
  call(`${base}/${path}`, { method, token, body });
const update = (path: string, value: unknown, token = admin) =>
  send('PATCH', path, { operation: 'UPDATE', update: value }, token);
const replace = (path: string, configuration: unknown, token = admin) =>
  send('PATCH', path, { operation: 'REPLACE', configuration }, token);
const remove = (path: string, token = admin) => send('DELETE', path, undefined, token);
const read = async (path: string, token = admin) => (await call(`${base}/${path}`, { token })).body as Entry;
const define = (key: string, definition: unknown, token = admin) =>
  update('platform/configuration-service', { [key]: definition }, token);

interface Entry {
  latest: { revision: number; created: string; lastUpdated: string; configuration: unknown } | null;
  active: { revision: number } | null;
}

const latestOf = (answered: Answered) => (answered.body as Entry).latest;

/** Returns the events that the configuration service recorded during `work`, oldest first. */
async function eventsDuring(work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const { rows: before } = await database.query<{ id: string }>(
    'SELECT coalesce(max(sequence), 0) AS id FROM recorded',
  );
  await work();
  const { rows } = await database.query<Record<string, unknown>>(
    'SELECT namespace, name, correlation_id, tenant, payload FROM recorded WHERE sequence > $1 ORDER BY sequence',
    [before[0]?.id],
  );
  return rows;
}

beforeAll(async () => {
  platform = await startTestPlatform();
  base = `${platform.url}/configuration/v2/configuration`;
  admin = await roleToken(platform.access, role('configuration-admin'), {
    realm: 'demo',
    claims: { sub: 'ada', name: 'Ada' },
  });
  core = await roleToken(platform.access, role('configuration-admin'));
  reader = await roleToken(platform.access, role('configuration-reader'), { realm: 'demo' });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  // Events without subscribers are deleted when they are routed. A trigger therefore keeps copies of all events for
  // this test.
  await database.query(`CREATE TABLE recorded AS SELECT * FROM events WITH NO DATA;
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO recorded SELECT NEW.*; RETURN NEW; END';
    CREATE TRIGGER keep AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION keep()`);
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

describe('PATCH', () => {
  it('creates revision 0 if there is none, and returns urn, namespace, name and latest', async () => {
    const { status, body } = await update('patch/new', { a: 1 });
    expect(status).toBe(200);
    expect(body).toEqual({
      urn: 'urn:example:platform:configuration-service:v2:/configuration/patch/new',
      namespace: 'patch',
      name: 'new',
      latest: { revision: 0, created: expect.any(String), lastUpdated: expect.any(String), configuration: { a: 1 } },
    });
    expect(latestOf(await send('PATCH', 'patch/deleted', { operation: 'DELETE', property: 'x' }))).toMatchObject({
      revision: 0,
      configuration: {},
    });
  });

  it('edits the latest revision in place, even when it is pinned', async () => {
    const created = latestOf(await replace('patch/place', { a: 1 }));
    await send('POST', 'patch/place', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
    const edited = latestOf(await update('patch/place', { b: 2 }));
    expect(edited).toMatchObject({ revision: 0, created: created?.created, configuration: { a: 1, b: 2 } });
    expect(await read('patch/place')).toMatchObject({ active: { revision: 0, configuration: { a: 1, b: 2 } } });
  });

  it('DELETE removes a property by its literal key or its dotted path', async () => {
    await replace('patch/delete', { 'a:b': 1, c: { d: 1, e: 2 } });
    await send('PATCH', 'patch/delete', { operation: 'DELETE', property: 'a:b' });
    await send('PATCH', 'patch/delete', { operation: 'DELETE', property: 'c.d' });
    expect((await read('patch/delete')).latest?.configuration).toEqual({ c: { e: 2 } });
  });

  it('an edit without a change gets 200 and leaves even lastUpdated as it was', async () => {
    await replace('patch/same', { a: { b: [1] } });
    const before = await read('patch/same');
    const events = await eventsDuring(async () => {
      expect((await update('patch/same', { a: { b: [1] } })).status).toBe(200);
      expect((await replace('patch/same', { a: { b: [1] } })).status).toBe(200);
      expect((await send('PATCH', 'patch/same', { operation: 'DELETE', property: 'none' })).status).toBe(200);
    });
    expect(await read('patch/same')).toEqual(before);
    expect(events).toEqual([]);
  });

  it.each([
    { title: 'an unknown operation', body: { operation: 'MERGE' } },
    { title: 'no operation', body: {} },
    { title: 'UPDATE without update', body: { operation: 'UPDATE' } },
    { title: 'UPDATE with an array', body: { operation: 'UPDATE', update: [] } },
    { title: 'UPDATE with null', body: { operation: 'UPDATE', update: { a: null } } },
    { title: 'REPLACE without configuration', body: { operation: 'REPLACE' } },
    { title: 'REPLACE with null', body: { operation: 'REPLACE', configuration: null } },
    { title: 'DELETE without property', body: { operation: 'DELETE' } },
    { title: 'malformed JSON', body: '{"operation":' },
    { title: 'a prototype-polluting key', body: '{"operation":"UPDATE","update":{"__proto__":{"x":1}}}' },
  ])('$title gets 400 with a message, and writes nothing', async ({ body }) => {
    const { status, body: answer } = await send('PATCH', 'patch/bad', body);
    expect(status).toBe(400);
    expect(answer).toMatchObject({ errorMessage: expect.any(String) });
    expect((await read('patch/bad')).latest).toBeNull();
  });

  it('UPDATE of an array at the root gets 400, and REPLACE succeeds', async () => {
    await replace('patch/root', ['a']);
    expect((await update('patch/root', { a: 1 })).status).toBe(400);
    expect((await replace('patch/root', ['b'])).status).toBe(200);
  });
});

describe('definitions', () => {
  it('a value is validated after the merge; an invalid one gets 400 "Value not valid for …" and changes nothing', async () => {
    await define('valid:x', {
      configurationSchema: { type: 'object', required: ['a'], properties: { a: { type: 'number' } } },
    });
    expect((await update('valid/x', { a: 1 })).status).toBe(200);
    expect((await update('valid/x', { b: 1 })).status).toBe(200);
    const refused = await update('valid/x', { a: 'one' });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      errorMessage: expect.stringMatching(/^Value not valid for /),
      errors: [{ pointer: '/update/a', detail: 'must be number' }],
    });
    expect((await send('PATCH', 'valid/x', { operation: 'DELETE', property: 'a' })).status).toBe(400);
    expect((await read('valid/x')).latest?.configuration).toEqual({ a: 1, b: 1 });
  });

  it('defaults of the schema are inserted into the value', async () => {
    await define('default:x', {
      configurationSchema: { type: 'object', properties: { on: { type: 'boolean', default: true } } },
    });
    expect(latestOf(await update('default/x', { a: 1 }))?.configuration).toEqual({ a: 1, on: true });
  });

  it("a name's definition takes precedence over its namespace's, and core's over the tenant's", async () => {
    const arrays = { configurationSchema: { type: 'array' } };
    await define('order', arrays);
    expect((await replace('order/x', {})).status).toBe(400);
    await define('order:x', { configurationSchema: { type: 'object' } });
    expect((await replace('order/x', {})).status).toBe(200);
    await define('order', arrays, core);
    expect((await replace('order/x', { a: 1 })).status).toBe(400);
    expect((await replace('order/x', {}, core)).status).toBe(400);
  });

  it("a tenant's definition binds that tenant only", async () => {
    await define('own:x', { configurationSchema: { type: 'array' } });
    const other = await roleToken(platform.access, role('configuration-admin'), { realm: 'other' });
    expect((await replace('own/x', {}, other)).status).toBe(200);
    expect((await replace('own/x', {}, core)).status).toBe(200);
  });

  it('without a definition, or with an unusable schema, every value is valid', async () => {
    for (const [name, schema] of Object.entries({
      ref: { $ref: 'https://example.org/none.json' },
      type: { $schema: 'https://example.org/meta' },
    })) {
      await define(`unusable:${name}`, { configurationSchema: schema });
      expect((await replace(`unusable/${name}`, ['x'])).status).toBe(200);
    }
    expect((await replace('undefined/x', 'text')).status).toBe(200);
  });

  it('a definition may have configurationSchema, description and anonymousRead, and nothing else', async () => {
    expect((await define('d:1', { configurationSchema: {}, description: null, anonymousRead: true })).status).toBe(200);
    expect((await define('d:2', { description: 'x' })).status).toBe(400);
    expect((await define('d:3', { configurationSchema: {}, more: 1 })).status).toBe(400);
    expect((await define('d:4', { configurationSchema: { type: 5 } })).status).toBe(400);
    expect((await define('d:e:f', { configurationSchema: {} })).status).toBe(400);
    expect((await define('d:5', { configurationSchema: {}, anonymousRead: 'yes' })).status).toBe(400);
  });

  it('anonymousRead defaults to false, and survives an update that does not name it', async () => {
    await define('flag:x', { configurationSchema: {}, anonymousRead: true });
    await define('flag:x', { configurationSchema: { type: 'array' }, description: 'new' });
    await define('flag:y', { configurationSchema: {} });
    const all = (await read('platform/configuration-service')).latest?.configuration;
    expect(all).toMatchObject({
      'flag:x': { anonymousRead: true, description: 'new' },
      'flag:y': { anonymousRead: false },
    });
  });
});

describe('POST', () => {
  it('CREATE-REVISION copies the latest revision to the next number, and responds like PATCH', async () => {
    await replace('post/x', ['a']);
    expect(latestOf(await send('POST', 'post/x', { operation: 'CREATE-REVISION' }))).toMatchObject({
      revision: 1,
      configuration: ['a'],
    });
    expect(latestOf(await send('POST', 'post/none', { operation: 'CREATE-REVISION' }))).toMatchObject({
      revision: 0,
      configuration: {},
    });
  });

  it('SET-ACTIVE-REVISION returns the number, and also accepts the older property setActiveRevision', async () => {
    const { body } = await send('POST', 'post/x', { operation: 'SET-ACTIVE-REVISION', revision: 1 });
    expect(body).toEqual({ namespace: 'post', name: 'x', active: 1 });
    const older = await send('POST', 'post/x', { operation: 'SET-ACTIVE-REVISION', setActiveRevision: 0 });
    expect(older.body).toMatchObject({ active: 0 });
  });

  it.each([{ revision: 9 }, { revision: -1 }, { revision: '1' }, { revision: 0.5 }, { revision: null }, {}])(
    'SET-ACTIVE-REVISION with $revision gets 400, and leaves the pin',
    async (operand) => {
      expect((await send('POST', 'post/x', { operation: 'SET-ACTIVE-REVISION', ...operand })).status).toBe(400);
      expect((await read('post/x')).active?.revision).toBe(0);
    },
  );

  it('an unknown operation gets 400', async () => {
    expect((await send('POST', 'post/x', { operation: 'UNPIN' })).status).toBe(400);
    expect((await send('POST', 'post/none-such', { operation: 'SET-ACTIVE-REVISION', revision: 0 })).status).toBe(400);
  });
});

describe('DELETE', () => {
  it('removes all revisions and the pin, and returns deleted: false if nothing existed', async () => {
    await replace('gone/x', ['a']);
    await send('POST', 'gone/x', { operation: 'CREATE-REVISION' });
    await send('POST', 'gone/x', { operation: 'SET-ACTIVE-REVISION', revision: 1 });
    expect((await remove('gone/x')).body).toEqual({ deleted: true });
    expect((await remove('gone/x')).body).toEqual({ deleted: false });
    expect(await read('gone/x')).toMatchObject({ latest: null, active: null });
    expect(latestOf(await replace('gone/x', ['b']))?.revision).toBe(0);
    expect((await read('gone/x')).active).toBeNull();
  });
});

describe('events', () => {
  it('each change of tenant configuration sends an event that names the actor', async () => {
    const events = await eventsDuring(async () => {
      await update('told/x', { a: 1 });
      await send('POST', 'told/x', { operation: 'CREATE-REVISION' });
      await send('POST', 'told/x', { operation: 'SET-ACTIVE-REVISION', revision: 1 });
      await remove('told/x');
    });
    const urn = 'urn:example:platform:configuration-service:v2:/configuration/told/x';
    const ada = { id: 'ada', name: 'Ada' };
    expect(events.map(({ name }) => name)).toEqual([
      'configuration-updated',
      'revision-created',
      'active-revision-set',
      'configuration-deleted',
    ]);
    for (const event of events)
      expect(event).toMatchObject({
        namespace: 'configuration-service',
        correlation_id: 'told:x',
        tenant: '65f0c2a9e4b0a1d2c3f4a5b6',
        payload: { namespace: 'told', name: 'x', urn },
      });
    expect(events[0]?.payload).toMatchObject({
      revision: 0,
      lastUpdated: expect.any(String),
      update: { operation: 'UPDATE', data: { a: 1 } },
      updatedBy: ada,
    });
    expect(events[1]?.payload).toMatchObject({ revision: 1, createdBy: ada });
    expect(events[2]?.payload).toMatchObject({ revision: 1, from: null, setBy: ada });
    expect(events[3]?.payload).toMatchObject({ deletedBy: ada });
  });

  it('core configuration, rejected changes and an unchanged active revision cause no event', async () => {
    await replace('silent/x', ['a']);
    await send('POST', 'silent/x', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
    const events = await eventsDuring(async () => {
      await update('silent/core', { a: 1 }, core);
      await remove('silent/core', core);
      await update('silent/x', { a: null });
      await replace('silent/x', ['b'], reader);
      await send('POST', 'silent/x', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
      await remove('silent/none');
    });
    expect(events).toEqual([]);
  });
});

describe('concurrency and size', () => {
  /** Sends a request again while the service is busy, as clients do. The queue is full for longer on a busy machine. */
  async function served(ask: () => Promise<Answered>): Promise<Answered> {
    for (;;) {
      const answer = await ask();
      if (answer.status !== 503) return answer;
      await delay(500);
    }
  }

  it('none of 50 concurrent updates is lost', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `key ${n}`);
    const answers = await Promise.all(keys.map((key) => served(() => update('race/update', { [key]: 1 }))));
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200));
    expect(Object.keys((await read('race/update')).latest?.configuration as object).toSorted()).toEqual(
      keys.toSorted(),
    );
  });

  it('20 revisions that are created concurrently are numbered without a gap', async () => {
    await replace('race/revision', ['a']);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => served(() => send('POST', 'race/revision', { operation: 'CREATE-REVISION' }))),
    );
    const numbers = answers.map((answered) => latestOf(answered)?.revision ?? -1).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
  });

  it('writes and concurrent deletes all succeed, and leave a complete configuration', async () => {
    const work = Array.from({ length: 30 }, (_, n) =>
      served(() => (n % 3 === 0 ? remove('race/delete') : update('race/delete', { [`k${n}`]: n }))),
    );
    expect(new Set((await Promise.all(work)).map(({ status }) => status))).toEqual(new Set([200]));
    const { latest } = await read('race/delete');
    expect(latest === null || latest.revision === 0).toBe(true);
  });

  it('10,000 entries of objects: write, unchanged write, read and pin take a moment each', async () => {
    const items = { type: 'object', properties: { label: { type: 'string' }, value: { type: 'string' } } };
    await define('big:list', { configurationSchema: { type: 'array', items } });
    const entries = Array.from({ length: 10_000 }, (_, n) => ({
      label: `Municipality number ${n} of the province`,
      value: `m-${n}`,
    }));
    const times: number[] = [];
    const timed = async (work: () => Promise<Answered>) => {
      const started = performance.now();
      expect((await work()).status).toBe(200);
      times.push(performance.now() - started);
    };
    await timed(() => replace('big/list', entries));
    await timed(() => replace('big/list', entries));
    await timed(() => replace('big/list', entries.toReversed()));
    await timed(() => call(`${base}/big/list/active?orLatest=true`, { token: reader }));
    await timed(() => send('POST', 'big/list', { operation: 'SET-ACTIVE-REVISION', revision: 0 }));
    // The limit is 30 times the usual time, because other test files run concurrently. An implementation with quadratic
    // time would need minutes.
    expect(Math.max(...times)).toBeLessThan(30_000);
    expect((await read('big/list')).latest?.configuration).toEqual(entries.toReversed());
  });
});
