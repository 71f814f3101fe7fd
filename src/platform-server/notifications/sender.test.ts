// Tests the sender of a tenant's mail, which an administrator of the tenant configures over HTTP.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { tenantKey } from '../tenant-key.ts';
import { createSenderPolicy } from './sender.ts';

let platform: TestPlatform;
let pool: pg.Pool;
let token: string;
beforeAll(async () => {
  platform = await startTestPlatform();
  pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 1 });
  const realm = platform.tenant.realm;
  token = await roleToken(platform.access, { 'configuration-service': ['configuration-admin'] }, { realm });
});
afterAll(async () => {
  await pool.end();
  await platform.close();
});

const write = (body: object) =>
  call(`${platform.url}/configuration/v2/configuration/platform/notification-service`, {
    method: 'PATCH',
    token,
    body,
  });
// The address in the MAIL_FROM of the test platform.
const operator = 'forms@platform.example.org';
const update = (fromEmail: string) => write({ operation: 'UPDATE', update: { email: { fromEmail } } });

describe('an administrator of a tenant', () => {
  it("may send mail from the operator's address and from the domains listed for the tenant, in any case", async () => {
    expect((await update(operator.toUpperCase())).status).toBe(200);
    expect((await update('town@springfield.example')).status).toBe(400);
    const id = tenantKey(platform.tenant.id);
    await pool.query("UPDATE tenants SET mail_domains = '{springfield.example}' WHERE id = $1", [id]);
    expect((await update('town@Springfield.example')).status).toBe(200);
  });

  it('gets 400 with a pointer for any other address in the operator’s domain, its subdomains or other domains', async () => {
    for (const address of [
      'ceo@bank.example',
      'security@platform.example.org',
      'town@evil.platform.example.org',
      'a@platform.example.org.evil.example',
    ])
      expect(await update(address)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/update/email/fromEmail' }] },
      });
    expect(await write({ operation: 'REPLACE', configuration: { email: { fromEmail: 'a@b.example' } } })).toMatchObject(
      { status: 400, body: { errors: [{ pointer: '/configuration/email/fromEmail' }] } },
    );
  });
});

it('a sender that was stored before its domain had to be listed is not used, and blocks no other change', async () => {
  const policy = createSenderPolicy({ operator: 'no-reply@forms.example', domainsOf: async () => ['town.example'] });
  const document = (fromEmail: string) => ({ email: { fromEmail } });
  expect(await policy.senderOf('t', 'a@elsewhere.example')).toBeUndefined();
  expect(await policy.senderOf('t', 'staff@forms.example')).toBeUndefined();
  expect(await policy.senderOf('t', 'a@town.example')).toBe('a@town.example');
  const stored = document('a@elsewhere.example');
  expect(await policy.refuse('t', stored, stored)).toBeUndefined();
  expect(await policy.refuse('t', stored, {})).toMatchObject({ pointer: '/email/fromEmail' });
});
