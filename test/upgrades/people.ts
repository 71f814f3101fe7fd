// The people and services that use an installation in these tests: applicants, intake applications, administrators, and
// browsers that are signed in. Browsers replace the public addresses in redirects with the addresses of the processes.
import { call, roleToken } from '../support/platform.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from '../support/site-browser.ts';
import type { Facts } from './dump.ts';
import { accessPublicUrl, site, targetUrn, tenant, type World } from './world.ts';

export const cookieName = 'formgate_session';
export const clientId = 'web';

export const definition = {
  id: 'permit',
  name: 'Permit',
  anonymousApply: true,
  applicantRoles: ['applicant'],
  clerkRoles: ['clerk'],
  assessorRoles: ['assessor'],
  oneFormPerApplicant: false,
  dataSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
};

export type Who = 'intake' | 'admin' | 'alice';

/** Issues tokens of the realm demo that are valid for a day. */
export async function createTokens({ access }: World): Promise<Record<Who, string>> {
  const exp = Math.floor(Date.now() / 1000) + 86_400;
  const make = (sub: string, roles: string[], realmRoles: string[] = []) =>
    roleToken(access, { 'form-service': roles }, { realm: 'demo', realmRoles, claims: { sub, exp, name: sub } });
  const [intake, admin, alice] = await Promise.all([
    make('intake', ['intake-application']),
    make('admin', ['form-admin']),
    make('alice', [], ['applicant']),
  ]);
  return { intake, admin, alice };
}

/** Writes the tenant's form definition, and the tenant's client at the token handler. */
export async function configure(world: World): Promise<void> {
  const token = await roleToken(world.access, { 'configuration-service': ['configuration-admin'] }, { realm: 'core' });
  const query = `?tenantId=${encodeURIComponent(world.access.urns.tenant(tenant.id))}`;
  const client = {
    redirectUris: [`${site}/token-handler/clients/${clientId}/callback`],
    targets: [{ id: 'api', upstream: targetUrn }],
  };
  const write = async (name: string, update: object) => {
    const url = `${world.platformUrl}/configuration/v2/configuration/platform/${name}${query}`;
    const { status, text } = await call(url, { method: 'PATCH', token, body: { operation: 'UPDATE', update } });
    if (status !== 200) throw new Error(`The configuration was not written: ${status} ${text}`);
  };
  await write('form-service', { [definition.id]: definition });
  await write('token-handler', { clients: { [clientId]: client } });
}

/** Registers the client at the identity provider. */
export async function register(world: World, url: string): Promise<void> {
  const token = await roleToken(world.access, { 'token-handler': ['token-handler-admin'] }, { realm: 'demo' });
  const body = { registrationToken: await world.access.registrationToken('demo') };
  const { status, text } = await call(`${url}/token-handler/v1/clients/${clientId}`, { method: 'POST', token, body });
  if (status !== 200) throw new Error(`The client was not registered: ${status} ${text}`);
}

export interface Person {
  browser: SiteBrowser;
  csrf: string;
}

/** Signs a person in. `url` is the address of the token handler that serves the site's requests. */
export async function signIn(world: World, url: string, email = 'alice@example.com'): Promise<Person> {
  const browser = createSiteBrowser();
  const real = (address: URL | string) => String(address).replace(accessPublicUrl, world.access.url).replace(site, url);
  const isCallback = ({ location }: Visit) => location?.pathname.endsWith('/callback') === true;
  const follow = async (visit: Visit): Promise<Visit> =>
    visit.location && !isCallback(visit) ? follow(await browser.request(real(visit.location))) : visit;
  const callbackUrl = encodeURIComponent(`${site}/token-handler/clients/${clientId}/callback`);
  const start = `${url}/token-handler/clients/${clientId}/auth?tenant=demo&callbackUrl=${callbackUrl}`;
  const form = await follow(await browser.request(start));
  const sent = await follow(await browser.submit(form, { username: email, password: email.split('@', 1)[0] ?? '' }));
  if (!sent.location) throw new Error(`No callback, but ${sent.status}: ${sent.text}`);
  const landed = await browser.request(real(sent.location));
  if (landed.status !== 302) throw new Error(`callback: ${landed.status} ${landed.text}`);
  // This request sets the CSRF cookie.
  await browser.request(`${url}/token-handler/sessions`);
  return { browser, csrf: browser.cookie(url, 'XSRF-TOKEN') ?? '' };
}

/** Returns the Cookie, CSRF and Origin headers of a browser, from its cookies in a dump. */
export function cookieOf({ cookie, csrf }: Facts['sessions'][string]): Record<string, string> {
  return { Cookie: `${cookieName}=${cookie}; XSRF-TOKEN=${csrf}`, 'X-XSRF-TOKEN': csrf, Origin: site };
}
