// Uses an installation of the old version until every store has rows of every kind, and stops it in the middle of its
// work: events wait in the outbox, and a pod has died while it refreshed a session. SQL and Redis commands imitate only
// the effects of time and of faults: forms get older, items are quarantined, and leftovers of registrations stay.
import { call } from '../support/platform.ts';
import { until } from '../support/until.ts';
import type { Facts } from './dump.ts';
import {
  clientId,
  configure,
  cookieName,
  createTokens,
  definition,
  type Person,
  register,
  signIn,
  type Who,
} from './people.ts';
import type { Product } from './products.ts';
import { tenant, type World } from './world.ts';

const day = 86_400_000;

export async function fillOldStores(world: World): Promise<Facts> {
  const platform = await world.start('platform-server', 'old');
  await configure(world);
  const [forms, handler] = await Promise.all([world.start('forms', 'old'), world.start('token-handler', 'old')]);
  await until('the registration of the form service', () => /registered at the platform/.test(forms.logText()));
  await register(world, handler.url);
  const sessions = await openSessions(world, handler);
  const filled = await fillForms(world, forms);
  await handler.kill();
  await age(world, filled.forms);
  await world.reconcile('old');
  await until('the outbox', async () => (await waiting(world)) === 0);
  await platform.kill();
  Object.assign(filled.forms, await interrupt(world, forms));
  await addLeftovers(world, filled.forms);
  return { ...filled, sessions, madeAt: new Date().toISOString() };
}

type Ask = (
  method: string,
  path: string,
  as: Who,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<unknown>;

async function createAsk(world: World, { url }: Product): Promise<Ask> {
  const tokens = await createTokens(world);
  return async (method, path, as, body, headers = {}) => {
    const answered = await call(`${url}/form/v1/forms${path}`, { method, token: tokens[as], body, headers });
    if (answered.status >= 300) throw new Error(`${method} ${path}: ${answered.status} ${answered.text}`);
    return answered.body;
  };
}

const applicantOf = (name: string) => ({
  addressAs: 'Kim',
  channels: [{ channel: 'email', address: `${name.toLowerCase()}@example.org` }],
});

function createForm(ask: Ask, name: string, as: Who = 'intake', headers = {}): Promise<string> {
  const body = { definitionId: definition.id, ...(as === 'intake' && { applicant: applicantOf(name) }) };
  return ask('POST', '', as, body, headers).then((created) => (created as { id: string }).id);
}

async function fillForms(world: World, product: Product): Promise<Pick<Facts, 'forms' | 'code' | 'idempotency'>> {
  const ask = await createAsk(world, product);
  const forms: Facts['forms'] = {};
  for (const name of [
    'draft',
    'held',
    'withCode',
    'codeUsed',
    'submitted',
    'archived',
    'locked',
    'warned',
    'expired',
    'deleted',
  ])
    forms[name] = await createForm(ask, name);
  forms.own = await createForm(ask, 'own', 'alice');
  const idempotency = {
    key: 'a key of a repeated create',
    body: { definitionId: definition.id, applicant: applicantOf('key') },
  };
  const created = await ask('POST', '', 'intake', idempotency.body, { 'Idempotency-Key': idempotency.key });
  forms.withKey = (created as { id: string }).id;
  for (const [name, id] of Object.entries(forms))
    await ask('PUT', `/${id}/data`, name === 'own' ? 'alice' : 'intake', {
      data: { name: `Kim of ${name}` },
      files: {},
    });
  for (const name of ['submitted', 'archived'] as const)
    await ask('POST', `/${forms[name]}`, 'intake', { operation: 'submit' });
  await ask('POST', `/${forms.archived}`, 'admin', { operation: 'archive' });
  await ask('POST', `/${forms.held}`, 'admin', { operation: 'hold' });
  await ask('DELETE', `/${forms.deleted}`, 'admin');
  const used = await requestCode(world, ask, forms.codeUsed ?? '', 'codeUsed');
  await ask('GET', `/${forms.codeUsed}/data`, 'intake', undefined, { 'X-Form-Code': 'WRONGCODE' }).catch(
    () => undefined,
  );
  await ask('GET', `/${forms.codeUsed}/data`, 'intake', undefined, { 'X-Form-Code': used });
  const code = await requestCode(world, ask, forms.withCode ?? '', 'withCode');
  return { forms, code, idempotency };
}

async function requestCode({ mailbox }: World, ask: Ask, id: string, name: string): Promise<string> {
  await ask('POST', `/${id}`, 'intake', { operation: 'send-code' });
  const pattern = /^\s*([A-Z0-9]{6,})\s*$/m;
  const isCode = ({ to, text }: { to: string; text: string }) =>
    to.includes(`${name.toLowerCase()}@example.org`) && pattern.test(text);
  return pattern.exec((await mailbox.waitFor(isCode)).text)?.[1] ?? '';
}

/**
 * Signs in four browsers. One session is used, one is refreshed, one is revoked, and one is abandoned: a pod dies while
 * it refreshes this session's tokens.
 */
async function openSessions(world: World, { url }: Product): Promise<Facts['sessions']> {
  const sessions: Facts['sessions'] = {};
  for (const name of ['used', 'refreshed', 'revoked', 'abandoned']) {
    const person = await signIn(world, url);
    sessions[name] = { csrf: person.csrf, ...(await idOf(person, url)) };
  }
  const key = `{sess:${sessions.abandoned?.handle}}:tokens`;
  await world.redis.command(
    'HSET',
    key,
    'intent',
    'an attempt of a pod that died',
    'since',
    String(Date.now() - 60_000),
  );
  return sessions;
}

async function idOf({ browser }: Person, url: string): Promise<{ cookie: string; handle: string }> {
  const [own]: { id: string }[] = JSON.parse((await browser.request(`${url}/token-handler/sessions`)).text);
  return { cookie: browser.cookie(url, cookieName) ?? '', handle: own?.id ?? '' };
}

/** Makes forms so old that the reconciler warns of their expiry, locks them or deletes them. */
async function age({ pools }: World, forms: Facts['forms']): Promise<void> {
  const back = (column: string, days: number, name: string) =>
    pools.forms.query(`UPDATE forms SET ${column} = $2 WHERE id = $1`, [
      forms[name],
      new Date(Date.now() - days * day),
    ]);
  for (const name of ['locked', 'expired']) await back('last_accessed', 20, name);
  await back('last_accessed', 14, 'warned');
  await pools.forms.query(`UPDATE forms SET status = 'Locked', locked = $2 WHERE id = $1`, [
    forms.expired,
    new Date(Date.now() - 40 * day),
  ]);
}

/** Changes forms while the platform is down, and kills the form service: the outbox keeps the rows. */
async function interrupt(world: World, product: Product): Promise<Facts['forms']> {
  const ask = await createAsk(world, product);
  const created = await createForm(ask, 'pendingcreated');
  await ask('PUT', `/${created}/data`, 'intake', { data: { name: 'Kim of pendingCreated' }, files: {} });
  const submitted = await createForm(ask, 'pendingsubmitted', 'alice');
  await ask('PUT', `/${submitted}/data`, 'alice', { data: { name: 'Kim of pendingSubmitted' }, files: {} });
  await ask('POST', `/${submitted}`, 'alice', { operation: 'submit' });
  const deleted = await createForm(ask, 'pendingdeleted');
  await ask('DELETE', `/${deleted}`, 'admin');
  await until('a failed delivery', async () => (await attempted(world)) > 0);
  await product.kill();
  return { pendingCreated: created, pendingSubmitted: submitted, pendingDeleted: deleted };
}

async function addLeftovers({ pools, access }: World, forms: Facts['forms']): Promise<void> {
  const tenantId = access.urns.tenant(tenant.id);
  const now = new Date();
  await pools.forms.query(
    `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
     VALUES ('lock', $1, $2, jsonb_build_object('formId', $1::text), 'database', '22P05', $3, $3, 1, '0.2.0')`,
    [forms.draft, tenantId, now],
  );
  await pools.tokenHandler.query(
    `INSERT INTO registration_attempts (id, tenant_id, client_id, realm, started)
     VALUES (gen_random_uuid(), $1, $2, 'demo', $3)`,
    [tenantId, clientId, now],
  );
}

const count = async ({ pools }: World, condition: string) =>
  (await pools.forms.query<{ n: number }>(`SELECT count(*)::int AS n FROM outbox WHERE ${condition}`)).rows[0]?.n ?? 0;
const soon = "accepted IS NULL AND not_before < now() + interval '1 minute'";
const waiting = (world: World) => count(world, soon);
const attempted = (world: World) => count(world, 'accepted IS NULL AND attempts > 0');
