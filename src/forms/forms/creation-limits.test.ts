// Tests over HTTP how many forms one person may create in an hour. request-rules.test.ts tests who is a person.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms, type TokenOptions } from '../../../test/support/forms.ts';
import { samplesOf } from '../../../test/support/metric-growth.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
  await forms.define({ ...permit, id: 'single', oneFormPerApplicant: true });
});
afterAll(() => forms.close());

const hour = 3_600_000;
const applicant: TokenOptions = { realmRoles: ['applicant'], claims: { name: 'Ana', email: 'ana@example.com' } };
/** The claims of a token that Keycloak issues to the service account of the client `portal`. */
const serviceAccount = { azp: 'portal', preferred_username: 'service-account-portal' };

/** Returns a function that creates forms as one new account. */
async function account(options: TokenOptions = applicant) {
  const token = await forms.tokenWith({ subject: randomUUID(), ...options });
  return (body: object = {}, headers: Record<string, string> = {}) =>
    forms.ask('POST', '', { token, headers, body: { definitionId: 'permit', ...body } });
}

type Create = Awaited<ReturnType<typeof account>>;

/** Creates the forms of an hour, and expects that no further form can be created. */
async function useUp(create: Create): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 60 }, () => create()));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect((await create()).status).toBe(429);
}

const refusals = async () =>
  (await samplesOf(forms.metricsUrl, 'formgate_rate_limited_requests_total'))['limit="creates"'] ?? 0;

/** Moves the clock to the beginning of an hour, so that no test continues in the next hour. */
const nextHour = () => forms.advance(hour - (forms.now().getTime() % hour));

describe('a signed-in person', () => {
  it('can create 60 forms in an hour, then gets 429 with Retry-After until the hour is over', async () => {
    nextHour();
    const create = await account();
    const before = await refusals();
    await useUp(create);
    expect((await refusals()) - before).toBe(1);
    const refused = await create();
    expect(refused.body).toMatchObject({ type: 'urn:formgate:problem:too-many-requests' });
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(3_000);
    expect(wait).toBeLessThanOrEqual(3_600);
    forms.advance(wait * 1_000);
    expect((await create()).status).toBe(201);
  });

  it('gets the form of a repeated request even if the limit is reached, and repeats do not count', async () => {
    nextHour();
    const create = await account();
    const key = { 'idempotency-key': randomUUID() };
    const first = await create({}, key);
    for (let nth = 0; nth < 3; nth += 1) expect((await create({}, key)).body).toEqual(first.body);
    for (let nth = 1; nth < 60; nth += 1) expect((await create()).status).toBe(201);
    expect((await create()).status).toBe(429);
    expect((await create({}, key)).body).toEqual(first.body);
  });

  it('is not limited by requests that create nothing', async () => {
    nextHour();
    const create = await account();
    expect((await create({ definitionId: 'single' })).status).toBe(201);
    for (let nth = 0; nth < 5; nth += 1) {
      expect((await create({ definitionId: 'single' })).status).toBe(409);
      expect((await create({ submit: true })).status).toBe(400);
    }
    for (let nth = 1; nth < 60; nth += 1) expect((await create()).status).toBe(201);
    expect((await create()).status).toBe(429);
  });
});

describe('an account that is not a person', () => {
  it.each<[string, TokenOptions, object]>([
    ['an intake application', { roles: ['intake-application'], realm: 'demo' }, { applicant: { channels: [] } }],
    ['a service account of Keycloak', { realmRoles: ['clerk'], claims: serviceAccount }, {}],
  ])('such as %s can create more', async (_who, options, body) => {
    nextHour();
    const create = await account(options);
    const channels = () => [{ channel: 'email', address: `${randomUUID()}@example.org` }];
    const given = () => ('applicant' in body ? { applicant: { channels: channels() } } : {});
    const answers = await Promise.all(Array.from({ length: 61 }, () => create(given())));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  });
});
