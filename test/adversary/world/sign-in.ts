// Signs a person in at the token handler over HTTP, as a browser with the frontend `web` does.
import { createSiteBrowser, type Visit } from '../../support/site-browser.ts';

export interface Person {
  email: string;
  /** The Cookie header of the browser. */
  cookie: string;
  csrf: string;
}

export const clientId = 'web';
export const callbackOf = (site: string) => `${site}/token-handler/clients/${clientId}/callback`;

/** Thrown if a step of a sign-in gets an unexpected status. */
export class SignInFailure extends Error {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;

  constructor(step: string, { status, headers, text }: Visit) {
    super(`${step} got ${status}`);
    this.status = status;
    this.headers = headers;
    this.text = text;
  }
}

/**
 * Sends one request of a sign-in to the token handler. A caller of `signIn` can pass a function that also measures the
 * step.
 */
export type RunStep = (step: () => Promise<Visit>) => Promise<Visit>;

/** Signs a person in. The password is the part of the email address before the @. */
export async function signIn(
  site: string,
  email: string,
  tenant = 'demo',
  run: RunStep = (step) => step(),
  browser = createSiteBrowser(),
): Promise<Person> {
  const isCallback = (url: URL) => url.pathname.endsWith('/callback');
  const visit = (name: string, url: string) =>
    run(async () => {
      const response = await browser.request(url);
      if (response.status !== 302) throw new SignInFailure(name, response);
      return response;
    });
  const query = new URLSearchParams({ tenant, callbackUrl: callbackOf(site) });
  const begun = await visit('auth', `${site}/token-handler/clients/${clientId}/auth?${query}`);
  const form = await browser.follow(begun, isCallback);
  const sent = await browser.submit(form, { username: email, password: email.split('@', 1)[0] ?? '' });
  const { location } = await browser.follow(sent, isCallback);
  if (!location) throw new Error(`The identity provider did not redirect to the callback for ${email}.`);
  await visit('callback', location.href);
  const names = ['formgate_session', 'XSRF-TOKEN'];
  const cookies = names.map((name) => `${name}=${browser.cookie(site, name) ?? ''}`);
  return { email, cookie: cookies.join('; '), csrf: browser.cookie(site, 'XSRF-TOKEN') ?? '' };
}
