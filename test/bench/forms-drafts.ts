// Creates the drafts of the forms bench over HTTP, as an intake application does. Each draft has a mailed code and an
// open read session.
import pg from 'pg';
import type { FormsSettings } from './forms-statements.ts';

export interface Drafts {
  settings: FormsSettings;
  /** Returns an access token that is valid for at least four minutes. */
  token: () => Promise<string>;
  /** Codes, keyed by form id. */
  codes: Map<string, string>;
}

interface Mail {
  to: string | string[];
  text: string;
}

export async function makeDrafts(publicUrl: string, databaseUrl: string, count: number): Promise<Drafts> {
  const token = createTokens(publicUrl);
  const codes = new Map<string, string>();
  // Each draft has its own address, because an address gets at most one code per minute.
  const addresses = Array.from({ length: count }, (_, index) => `bench-${Date.now()}-${index}@example.com`);
  const ids = new Map<string, string>();
  for (const address of addresses) ids.set(address, await createDraft(publicUrl, await token(), address));
  for (const [address, code] of await readCodes(publicUrl, addresses)) {
    const formId = ids.get(address) ?? '';
    const headers = { 'x-form-code': code };
    await send(`${publicUrl}/form/v1/forms/${formId}/data`, { token: await token(), headers, expect: 200 });
    codes.set(formId, code);
  }
  return { settings: await readSettings(databaseUrl, [...codes.keys()]), token, codes };
}

/** Returns a function that returns the same access token for a minute. A token is valid for five minutes. */
export function createTokens(publicUrl: string): () => Promise<string> {
  let token: Promise<string> | undefined;
  let fetched = 0;
  return () => {
    if (!token || performance.now() - fetched > 60_000) {
      token = accessToken(publicUrl);
      fetched = performance.now();
    }
    return token;
  };
}

async function accessToken(publicUrl: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: 'demo-intake', client_secret: 'demo-intake-secret' };
  const url = `${publicUrl}/auth/realms/demo/protocol/openid-connect/token`;
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
  return ((await response.json()) as { access_token: string }).access_token;
}

async function createDraft(publicUrl: string, token: string, address: string): Promise<string> {
  const applicant = { addressAs: 'Bench', channels: [{ channel: 'email', address }] };
  const body = { definitionId: 'business-licence', applicant };
  const { id } = await send<{ id: string }>(`${publicUrl}/form/v1/forms`, { token, body, expect: 201 });
  await send(`${publicUrl}/form/v1/forms/${id}`, { token, body: { operation: 'send-code' }, expect: 202 });
  return id;
}

/** Reads the codes in the mailbox, as applicants would. */
async function readCodes(publicUrl: string, addresses: string[]): Promise<Map<string, string>> {
  const wanted = new Set(addresses);
  const codes = new Map<string, string>();
  for (const mail of (await (await fetch(`${publicUrl}/mailbox/messages`)).json()) as Mail[]) {
    const address = [mail.to].flat().find((to) => wanted.has(to));
    // The code is the only text of its line. A link in the mail may contain a form id that ends like a code.
    const code = /^\s*([A-Z0-9]{6,})\s*$/m.exec(mail.text)?.[1];
    if (address && code && !codes.has(address)) codes.set(address, code);
  }
  if (codes.size < addresses.length) throw new Error(`${codes.size} of ${addresses.length} codes arrived`);
  return codes;
}

async function readSettings(databaseUrl: string, formIds: string[]): Promise<FormsSettings> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const sql = `SELECT f.id, f.tenant_id, u.issuer, u.subject, encode(u.code_hash, 'hex') AS hash
    FROM forms f JOIN used_codes u ON u.form_id = f.id WHERE f.id = ANY($1)`;
  const { rows } = await client.query(sql, [formIds]);
  await client.end();
  const { tenant_id: tenantId, issuer, subject } = rows[0];
  const forms = rows.map(({ id, hash }) => ({ formId: id, codeHash: hash }));
  return { databaseUrl, tenantId, issuer, subject, forms };
}

interface Sending {
  token: string;
  headers?: Record<string, string>;
  body?: object;
  expect: number;
}

async function send<T>(url: string, { token, headers, body, expect }: Sending): Promise<T> {
  const response = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (response.status !== expect) throw new Error(`${url} returned ${response.status}: ${await response.text()}`);
  return response.json() as Promise<T>;
}

/**
 * Makes commits return without waiting for the disk. The disk is the same for all contenders and slow on shared
 * machines, so waiting for it would hide differences between them.
 */
export async function stopWaitingForDisk(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('ALTER SYSTEM SET synchronous_commit = off');
  await client.query('SELECT pg_reload_conf()');
  await client.end();
}
