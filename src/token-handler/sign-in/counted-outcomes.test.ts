// Tests how sign-ins are counted by outcome, by the page that the person sees, and for clients whose sign-ins fail.
import type prom from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import type { Route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createSignInOutcomes, type SignInOutcomes } from './sign-in-outcomes.ts';

const client = { tenantId: 'urn:tenant:demo', clientId: 'web' };
let registry: prom.Registry;
let captured: CapturedLog;
let outcomes: SignInOutcomes;
beforeEach(() => {
  const metrics = createMetrics();
  registry = metrics.registry;
  captured = captureLog();
  outcomes = createSignInOutcomes({ metrics, clock: () => new Date(0), log: captured.log });
});

/** Returns the counts of sign-ins that are not 0, keyed by outcome and reason. */
async function counts(): Promise<Record<string, number>> {
  const { values = [] } = (await registry.getSingleMetric('formgate_sign_ins_total')?.get()) ?? {};
  const some = values.filter(({ value }) => value > 0);
  return Object.fromEntries(some.map(({ labels, value }) => [`${labels.outcome} ${labels.reason}`, value]));
}
const failing = async () =>
  (await registry.getSingleMetric('formgate_sign_in_failing_clients')?.get())?.values[0]?.value;

/** Calls an observed route whose handler rejects with `error`. Expects that the route rejects with the same error. */
async function failWith(endpoint: 'auth' | 'callback', error: unknown, signInFacts?: object): Promise<void> {
  const handle = () => Promise.reject(error);
  const observed = outcomes.observe(endpoint, { path: '/x', handle } as unknown as Route);
  const response = { locals: signInFacts ? { signInFacts } : {} };
  await expect(observed.handle?.({} as never, {} as never, response as never)).rejects.toBe(error);
}

describe('an error response of the identity provider', () => {
  const failures = async () => {
    const { values = [] } = (await registry.getSingleMetric('formgate_dependency_failures_total')?.get()) ?? {};
    return values.filter(({ value }) => value > 0).map(({ labels, value }) => ({ ...labels, value }));
  };
  const lines = () =>
    captured.lines().map(({ level, tenant, client: id, error, status }) => [level, tenant, id, error, status]);

  it('at the callback is logged, and counts as its failure', async () => {
    outcomes.providerError(client, { error: 'invalid_scope' });
    expect(lines()).toEqual([['warn', client.tenantId, client.clientId, 'invalid_scope', undefined]]);
    expect(await failures()).toEqual([{ dependency: 'identity-provider', kind: 'sign-in', value: 1 }]);
  });

  it('at the token endpoint, whose failures are counted elsewhere, is only logged', async () => {
    outcomes.providerError(client, { error: 'invalid_grant', status: 400 });
    expect(lines()).toEqual([['warn', client.tenantId, client.clientId, 'invalid_grant', 400]]);
    expect(await failures()).toEqual([]);
  });

  it('that did not arrive is neither logged nor counted', async () => {
    outcomes.providerError(client, undefined);
    expect([lines(), await failures()]).toEqual([[], []]);
  });
});

describe('a sign-in counts as', () => {
  it('succeeded', async () => {
    outcomes.succeeded(client);
    expect(await counts()).toEqual({ 'succeeded none': 1 });
  });

  it('abandoned if the person cancelled, or took too long', async () => {
    outcomes.cancelled();
    await failWith('callback', new Problem('invalid-request'), { checked: client });
    expect(await counts()).toEqual({ 'abandoned cancelled': 1, 'abandoned sign-in-expired': 1 });
  });

  it('failed with the page that the person gets', async () => {
    await failWith('auth', new Problem('invalid-request'));
    await failWith('auth', new Problem('not-found'), { tenant: 'Demo' });
    await failWith('callback', new Problem('dependency-failed'), { client: 'Web' });
    expect(await counts()).toEqual({
      ...{ 'failed invalid-link': 1, 'failed unknown-client': 1, 'failed identity-provider-down': 1 },
    });
  });

  it('failed with the page for an unavailable service if the database fails, and the general one for a defect', async () => {
    await failWith('auth', Object.assign(new Error('away'), { code: 'ECONNREFUSED', syscall: 'connect' }));
    await failWith('auth', new TypeError('a defect'));
    expect(await counts()).toEqual({ 'failed service-unavailable': 1, 'failed general': 1 });
  });

  it('nothing while it goes on', async () => {
    const seen: unknown[][] = [];
    const route = { path: '/x', handle: (...given: unknown[]) => void seen.push(given) } as unknown as Route;
    const observed = outcomes.observe('auth', route);
    expect(observed.path).toBe('/x');
    const given = [{}, {}, { locals: {} }] as never[];
    await observed.handle?.(...(given as [never, never, never]));
    expect([seen, await counts()]).toEqual([[given], {}]);
  });
});

describe('a client', () => {
  it('whose sign-ins fail five times is reported, until one succeeds', async () => {
    for (let time = 0; time < 5; time += 1)
      await failWith('callback', new Problem('dependency-failed'), { checked: client });
    expect(await failing()).toBe(1);
    expect(captured.lines()).toMatchObject([{ tenant: client.tenantId, client: 'web', reason: 'service-unavailable' }]);
    outcomes.succeeded(client);
    expect(await failing()).toBe(0);
  });

  it('is not blamed for sign-ins that people abandon, nor for failures before it is known', async () => {
    for (let time = 0; time < 5; time += 1) {
      await failWith('callback', new Problem('invalid-request'), { checked: client });
      await failWith('callback', new Problem('dependency-failed'), {});
    }
    expect(await failing()).toBe(0);
  });
});

it('a route that a listener serves is left as it is', () => {
  const route = { path: '/x' } as unknown as Route;
  expect(outcomes.observe('auth', route)).toBe(route);
});
