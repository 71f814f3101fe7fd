// Sign-in from the first redirect to the landing place, against a real OpenID provider, with both kinds of store.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';

describe.each(['memory', 'redis'] as const)('sign-in with sessions in %s', (store) => {
  let world: SessionWorld;
  beforeAll(async () => {
    world = await startSessionWorld({ store });
  });
  afterAll(() => world.close());

  it('leads to the site’s root with a session of the person', async () => {
    const { browser, landed } = await world.signIn();
    expect(landed.location?.href).toBe(`${world.site}/`);
    const list = await world.sessions(browser);
    expect(list.status).toBe(200);
    expect(JSON.parse(list.text)).toEqual([
      {
        tenantId: world.handler.tenant.id,
        clientId: 'web',
        id: expect.stringMatching(/^[\w-]{43}$/),
        name: 'Alice Applicant',
        email: 'alice@example.com',
        roles: expect.any(Array),
        expiry: expect.any(String),
        authenticatedBy: null,
        created: expect.any(String),
        core: false,
      },
    ]);
    expect(list.text).not.toContain(browser.cookie(world.site, cookieName));
  });
});
