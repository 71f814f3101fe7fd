// Signs a person in at the token handler over plain HTTP, as the frontend `web` would have a browser do it.
import { createSiteBrowser, type Visit } from '../../support/site-browser.ts';

export interface Person {
  email: string;
  /** The Cookie header of the browser. */
  cookie: string;
  csrf: string;
}

export const clientId = 'web';
export const callbackOf = (site: string) => `${site}/token-handler/clients/${clientId}/callback`;

/** Thrown where a step of a sign-in is answered with another status than the expected one. */
export class SignInFailure extends Error {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;

  constructor(step: string, { status, headers, text }: Visit) {
    super(`${step} answered ${status}`);
    this.status = status;
    this.headers = headers;
    this.text = text;
  }
}

/** The password of everybody is the part of the address before the @. */
export async function signIn(site: string, email: string, tenant = 'demo'): Promise<Person> {
  const browser = createSiteBrowser();
  const isCallback = (url: URL) => url.pathname.endsWith('/callback');
  const query = new URLSearchParams({ tenant, callbackUrl: callbackOf(site) });
  const begun = await browser.request(`${site}/token-handler/clients/${clientId}/auth?${query}`);
  if (begun.status !== 302) throw new SignInFailure('auth', begun);
  const form = await browser.follow(begun, isCallback);
  const sent = await browser.submit(form, { username: email, password: email.split('@', 1)[0] ?? '' });
  const { location } = await browser.follow(sent, isCallback);
  if (!location) throw new Error(`The access service did not call back for ${email}.`);
  const landed = await browser.request(location);
  if (landed.status !== 302) throw new SignInFailure('callback', landed);
  const names = ['formgate_session', 'XSRF-TOKEN'];
  const cookies = names.map((name) => `${name}=${browser.cookie(site, name) ?? ''}`);
  return { email, cookie: cookies.join('; '), csrf: browser.cookie(site, 'XSRF-TOKEN') ?? '' };
}
