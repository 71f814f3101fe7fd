// Injects a fault at each call to the configuration service during create, patch and delete. Checks the status, and
// checks that a repeated request completes the change. A real client talks to a real configuration service through a
// proxy. Each fault breaks only some of the calls, so that each call is tested with some of the faults.
// REGISTER_FAULT_CALLS=6 runs all combinations.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fault, type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import type { Answered } from '../../../test/support/platform.ts';
import { togetherOrInTurn } from '../../../test/support/platform-behaviour.ts';
import { type RegisterBackend, type Replica, startRegisterBackend } from '../../../test/support/registers.ts';
import { sizeOf } from '../../../test/support/sizes.ts';

let backend: RegisterBackend;
let place: { tenantId: string };

beforeAll(async () => {
  backend = await startRegisterBackend();
  place = { tenantId: backend.tenant.id };
});

afterAll(() => backend.close());

const home = ['platform', 'configuration-service'] as const;
const before = ['Banff'];
const after = [{ label: 'Jasper' }];
const pathOf = (name: string) => `/${encodeURIComponent(name)}`;
const keyOf = (name: string) => `data-register:${name}`;

async function stored(name: string) {
  const { latest: definitions } = await backend.configuration.read(...home, place);
  const { latest, active } = await backend.configuration.read('data-register', name, place);
  const definition = (definitions?.configuration as Record<string, unknown> | undefined)?.[keyOf(name)];
  return { definition, latest, active };
}

/** Writes `before` as revision 0, pins it, and adds revision 1. */
async function writePinned(name: string): Promise<void> {
  await backend.configuration.replace('data-register', name, before, place);
  await backend.revisions.create('data-register', name, place);
  await backend.configuration.setActiveRevision('data-register', name, 0, place);
}

async function expectRegister(name: string, anonymousRead: boolean): Promise<void> {
  const { definition, latest, active } = await stored(name);
  expect(definition).toMatchObject({ description: 'After', configurationSchema: { type: 'array' } });
  expect((definition as { anonymousRead?: boolean }).anonymousRead ?? false).toBe(anonymousRead);
  expect(latest).toMatchObject({ revision: 1, configuration: after });
  expect(active).toMatchObject({ revision: 1, configuration: after });
}

interface Change {
  /** Describes the change. `prepare` creates a register for which the change needs every possible step. */
  what: string;
  /** The calls to the configuration service after both parts of the register were read, in order. */
  steps: string[];
  prepare(name: string): Promise<void>;
  send(replica: Replica, name: string): Promise<Answered>;
  success: number;
  /** The status of the repeated request if the first one completed the change. */
  done: number;
  /** The status of the repeated request if the first one completed only a part of the change. */
  half: number;
  expectDone(name: string): Promise<void>;
}

const changes: Change[] = [
  {
    what: 'a create over a left-over definition and pinned left-over entries',
    steps: ['PATCH definitions', 'PATCH entries', 'POST entries', 'PATCH definitions'],
    async prepare(name) {
      await writePinned(name);
      const leftOver = { configurationSchema: { type: 'object' }, description: 'Before', anonymousRead: true };
      await backend.configuration.update(...home, { [keyOf(name)]: leftOver }, place);
    },
    send: (replica, name) => replica.request('POST', '', { body: { name, description: 'After', entries: after } }),
    success: 201,
    done: 409,
    half: 201,
    expectDone: (name) => expectRegister(name, false),
  },
  {
    what: 'a patch of everything while an older revision is pinned',
    steps: ['PATCH entries', 'POST entries', 'PATCH definitions'],
    async prepare(name) {
      await writePinned(name);
      const definition = { configurationSchema: { type: 'array' }, description: 'Before', anonymousRead: true };
      await backend.configuration.update(...home, { [keyOf(name)]: definition }, place);
    },
    send: (replica, name) => replica.request('PATCH', pathOf(name), { body: { description: 'After', entries: after } }),
    success: 200,
    done: 200,
    half: 200,
    expectDone: (name) => expectRegister(name, true),
  },
  {
    what: 'a delete of a register with a history',
    steps: ['PATCH definitions', 'DELETE entries'],
    async prepare(name) {
      await writePinned(name);
      await backend.configuration.update(...home, { [keyOf(name)]: { configurationSchema: { type: 'array' } } }, place);
    },
    send: (replica, name) => replica.request('DELETE', pathOf(name)),
    success: 204,
    done: 404,
    half: 404,
    async expectDone(name) {
      expect(await stored(name)).toEqual({ definition: undefined, latest: undefined, active: undefined });
    },
  },
];

/** Runs `work` with a new replica, so that the circuit breakers and tokens of other cases do not affect it. */
async function withReplica<T>(
  timeoutMs: number,
  work: (replica: Replica, proxy: FaultProxy) => Promise<T>,
): Promise<T> {
  const { origin, pathname } = new URL(backend.configurationUrl);
  const proxy = await startFaultProxy(origin);
  const replica = await backend.start({ configurationUrl: `${proxy.url}${pathname}`, timeoutMs });
  try {
    return await work(replica, proxy);
  } finally {
    await replica.close();
    await proxy.close();
  }
}

/**
 * Time limit in milliseconds for calls that hang. Even on a busy machine, listing the registers of the largest tenant
 * takes less time.
 */
const hangMs = 2_000;
/** True for statuses with which the configuration service may reject a request. */
const isRejection = (fault: Fault) => typeof fault === 'number' && [400, 409, 413, 422].includes(fault);
const isPerformed = (fault: Fault) => fault === 'half a response' || fault === 'lost response';

/**
 * Returns the numbers of the calls that the fault with the index `nthFault` breaks. The first call has the number 1.
 */
function chosenCalls(calls: number, nthFault: number): number[] {
  const all = Array.from({ length: calls }, (_, index) => index + 1);
  return all.filter((at) => (at + nthFault) % calls < sizeOf('REGISTER_FAULT_CALLS'));
}

const stepOf = (call: string) =>
  `${call.split(' ')[0]} ${call.includes('/platform/configuration-service') ? 'definitions' : 'entries'}`;

describe.each(changes)('$what', (change) => {
  const calls = change.steps.length + 2;

  it('makes only the expected calls, in an order in which each may fail', () =>
    withReplica(10_000, async (replica, proxy) => {
      const name = backend.newName();
      await change.prepare(name);
      expect((await change.send(replica, name)).status).toBe(change.success);
      const made = proxy.calls.map(stepOf);
      expect(made.slice(0, 2).sort()).toEqual(['GET definitions', 'GET entries']);
      expect(made.slice(2)).toEqual(change.steps);
      await change.expectDone(name);
    }));

  const connections: Fault[] = ['refused', 'reset', 'half a response', 'lost response', 'hang'];
  const lasting: Fault[] = [...connections, 400, 409, 413, 422, 401, 403, 404, 429, 500, 503];
  it.each(lasting)(
    'returns the specified status if calls fail with %s from any call on, and a repeat ends in the right state',
    async (fault) => {
      const breakAt = (at: number) =>
        withReplica(fault === 'hang' ? hangMs : 10_000, async (replica, proxy) => {
          const name = backend.newName();
          await change.prepare(name);
          await proxy.break(fault, { at });
          const label = `call ${at} of ${calls}`;
          const failed = await change.send(replica, name);
          // The first two calls are reads. From the third call on, something may have been written.
          const isUnchanged = at <= 3 && !isPerformed(fault);
          expect(failed.status, label).toBe(isRejection(fault) && isUnchanged ? 400 : 502);
          expect(Object.hasOwn(failed.body as object, 'written'), label).toBe(at > 3);
          await proxy.heal();
          const repeat = await change.send(replica, name);
          const isDone = isPerformed(fault) && at === calls;
          const begun = at > 3 || (isPerformed(fault) && at === 3);
          expect(repeat.status, `repeat after ${label}`).toBe(
            isDone ? change.done : begun ? change.half : change.success,
          );
          await change.expectDone(name);
        });
      await togetherOrInTurn(chosenCalls(calls, lasting.indexOf(fault)), breakAt);
    },
  );

  const passing: Fault[] = ['reset', 'half a response', 'lost response', 401, 503];
  it.each(passing)('succeeds despite one %s at any call', async (fault) => {
    const breakAt = (at: number) =>
      withReplica(10_000, async (replica, proxy) => {
        const name = backend.newName();
        await change.prepare(name);
        await proxy.break(fault, { at, times: 1 });
        expect((await change.send(replica, name)).status, `call ${at}`).toBe(change.success);
        await change.expectDone(name);
      });
    await togetherOrInTurn(chosenCalls(calls, passing.indexOf(fault)), breakAt);
  });
});

describe('Reads', () => {
  const faults: Fault[] = [
    'refused',
    'reset',
    'half a response',
    'lost response',
    'hang',
    400,
    401,
    403,
    404,
    409,
    500,
    503,
  ];
  it.each(faults)(
    'GET of a register and of the list return the specified status if either call fails with %s',
    async (fault) => {
      const name = backend.newName();
      await backend.configuration.replace('data-register', name, before, place);
      await backend.configuration.update(...home, { [keyOf(name)]: { configurationSchema: { type: 'array' } } }, place);
      const readBroken = (path: string, at: number) =>
        withReplica(fault === 'hang' ? hangMs : 10_000, async (replica, proxy) => {
          await proxy.break(fault, { at });
          expect((await replica.request('GET', path)).status, `${path} call ${at}`).toBe(
            isRejection(fault) ? 400 : 502,
          );
          await proxy.heal();
          // The failed calls may have opened the circuit breaker, which closes again after a while.
          await expect.poll(async () => (await replica.request('GET', path)).status).toBe(200);
        });
      const paths = [pathOf(name), '', `${pathOf(name)}/entries`];
      const reads = paths.flatMap((path) => [() => readBroken(path, 1), () => readBroken(path, 2)]);
      await Promise.all(chosenCalls(reads.length, faults.indexOf(fault)).map((nth) => reads[nth - 1]?.()));
    },
  );
});

describe('A patch of both fields that fails midway', () => {
  it('reports what was written, and is no 4xx although the configuration service rejected the rest', () =>
    withReplica(10_000, async (replica, proxy) => {
      const name = backend.newName();
      const created = await replica.request('POST', '', { body: { name, description: 'Before', entries: before } });
      expect(created.status).toBe(201);
      proxy.calls.length = 0;
      // The patch makes four calls: two reads, one write of the entries, and one of the description. The last one
      // fails.
      await proxy.break(400, { at: 4 });
      const failed = await replica.request('PATCH', pathOf(name), { body: { description: 'After', entries: after } });
      expect(failed).toMatchObject({
        status: 502,
        body: {
          type: 'urn:formgate:problem:dependency-failed',
          detail: expect.stringContaining('repeat it'),
          written: ['the entries'],
        },
      });
      await proxy.heal();
      expect((await replica.request('GET', pathOf(name))).body).toMatchObject({
        description: 'Before',
        entries: after,
      });
    }));
});

describe('What a failure discloses', () => {
  it('a rejection tells the client its reason, a failure does not; neither logs responses or entries', () =>
    withReplica(10_000, async (replica, proxy) => {
      const body = { name: backend.newName(), description: 'After', entries: ['canary of the entries'] };
      await proxy.break(400, { at: 3 });
      const rejected = await replica.request('POST', '', { body });
      expect(rejected.body).toMatchObject({ status: 400, detail: expect.stringContaining('broken with 400') });
      await proxy.break(500, { at: 3 });
      const failed = await replica.request('POST', '', { body });
      expect(failed.body).toMatchObject({ type: 'urn:formgate:problem:dependency-failed', status: 502 });
      expect(failed.text).not.toContain('broken');
      expect(replica.logText()).not.toContain('canary');
    }));

  it('an open circuit is 502 with Retry-After, and calls work again after it has closed', () =>
    withReplica(10_000, async (replica, proxy) => {
      await proxy.break(503, { at: 1 });
      let response = await replica.request('GET', '');
      for (let asked = 0; asked < 20 && !response.headers.has('retry-after'); asked += 1)
        response = await replica.request('GET', '');
      expect(response.status).toBe(502);
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      const made = proxy.calls.length;
      expect((await replica.request('GET', '/towns')).status).toBe(502);
      expect(proxy.calls).toHaveLength(made);
      await proxy.heal();
      await expect.poll(async () => (await replica.request('GET', '')).status).toBe(200);
    }));
});
