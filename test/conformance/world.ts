// One token handler for all modules of the conformance suite. Each module gets its own tenant with a scripted realm,
// so that nothing that the token handler caches carries over to the next module.
import pino from 'pino';
import { expect } from 'vitest';
import { findFreePort } from '../../dev/ports.ts';
import { applySeed } from '../../src/platform-server/seed.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import { startTestPlatform } from '../support/platform.ts';
import type { SiteBrowser, Visit } from '../support/site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../support/token-handler.ts';
import { startScriptedProvider } from './provider.ts';
import type { Script, ScriptedRealm } from './realm.ts';

export interface ConformanceWorld {
  handler: TestTokenHandler;
  /** Prepares a new scripted realm, and registers the token handler's client there. */
  module(script?: Script): Promise<ModuleRun>;
  close(): Promise<void>;
}

/** A relying party at its own scripted realm. */
export interface ModuleRun {
  realm: ScriptedRealm;
  /** Starts a sign-in: the response redirects to the provider. */
  begin(browser: SiteBrowser): Promise<Visit>;
  /** Goes through a sign-in up to the callback, and returns the callback's address without fetching it. */
  toCallback(browser: SiteBrowser): Promise<URL>;
  /** Goes through a whole sign-in, and returns the response of the callback. */
  signIn(browser: SiteBrowser): Promise<Visit>;
  /** Follows the link that logs the person out, and the redirect to the provider and back. */
  logOut(browser: SiteBrowser): Promise<{ atProvider: URL | undefined; back: URL | undefined }>;
  /** Returns the id of the person who is signed in; undefined without a session. */
  personOf(browser: SiteBrowser): Promise<string | undefined>;
}

/** Number of prepared tenants. Each test uses one tenant, and each retry of a failed test uses another tenant. */
const mostModules = 90;
const realmOf = (index: number) => `module-${index}`;
const tenantIdOf = (index: number) => index.toString(16).padStart(24, '0');
const clientPath = '/token-handler/clients/web';

export async function startConformanceWorld(): Promise<ConformanceWorld> {
  const platform = await startTestPlatform();
  await addTenants(platform.databaseUrl);
  const provider = await startScriptedProvider(platform.access.url);
  const port = await findFreePort();
  const site = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port), PUBLIC_URL: site, SIGN_IN_LIMIT: '100000' };
  const handler = await startTestTokenHandler({ platform, accessUrl: provider.url, env });
  const callbackUrl = `${site}${clientPath}/callback`;
  await handler.configure({ web: { redirectUris: [callbackUrl], keycloakLogout: true } }, { core: true });
  let made = 0;

  return {
    handler,
    async module(script = {}) {
      made += 1;
      const tenantId = platform.access.urns.tenant(tenantIdOf(made));
      const realm = await provider.addRealm(realmOf(made));
      realm.script = script;
      const token = await handler.adminToken('core');
      const body = { registrationToken: 'any' };
      const query = new URLSearchParams({ tenantId }).toString();
      const { status, text } = await handler.api(`/clients/web?${query}`, { method: 'POST', token, body });
      if (status !== 200) throw new Error(`registration: ${status} ${text}`);
      const authUrl = `${site}${clientPath}/auth?${new URLSearchParams({ tenant: tenantId, callbackUrl })}`;
      const run: ModuleRun = {
        realm,
        begin: (browser) => browser.request(authUrl),
        async toCallback(browser) {
          const { status: begun, text: problem, location } = await run.begin(browser);
          if (!location) throw new Error(`sign-in did not start: ${begun} ${problem}`);
          const { location: callback } = await browser.request(provider.own(location));
          if (!callback) throw new Error('the provider did not call back');
          return callback;
        },
        signIn: async (browser) => browser.request(await run.toCallback(browser)),
        async logOut(browser) {
          const { location } = await browser.request(`${site}${clientPath}/logout`);
          if (!location?.href.startsWith(realm.issuer)) return { atProvider: undefined, back: location };
          return { atProvider: location, back: (await browser.request(provider.own(location))).location };
        },
        async personOf(browser) {
          const { status: listed, text: list } = await browser.request(`${site}/token-handler/sessions`);
          if (listed !== 200) return undefined;
          const [own]: { name?: string }[] = JSON.parse(list);
          return own?.name;
        },
      };
      return run;
    },
    async close() {
      await handler.close();
      await Promise.all([provider.close(), platform.close()]);
    },
  };
}

/** Expects that the sign-in succeeds, and that the relying party broke no rule. */
export async function expectAccepted(run: ModuleRun, browser: SiteBrowser): Promise<void> {
  const landed = await run.signIn(browser);
  expect([landed.status, landed.location?.pathname]).toEqual([302, '/']);
  expect(await run.personOf(browser)).toBe(run.realm.subject);
  expect(run.realm.violations).toEqual([]);
}

/**
 * Expects that the relying party redeems the code, but opens no session, and responds to the callback with `status`.
 */
export async function expectRejected(run: ModuleRun, browser: SiteBrowser, status = 502): Promise<void> {
  const answer = await run.signIn(browser);
  expect([answer.status, answer.location]).toEqual([status, undefined]);
  expect(await run.personOf(browser)).toBeUndefined();
  expect(run.realm.calls).toContain('token');
  expect(run.realm.violations).toEqual([]);
}

async function addTenants(databaseUrl: string): Promise<void> {
  const pool = createPool({ url: databaseUrl, size: 1, log: pino({ level: 'silent' }), metrics: createMetrics() });
  const indexes = Array.from({ length: mostModules }, (_, index) => index + 1);
  try {
    await applySeed(pool, {
      tenants: indexes.map((index) => ({ id: tenantIdOf(index), name: `Module ${index}`, realm: realmOf(index) })),
    });
  } finally {
    await pool.end();
  }
}
