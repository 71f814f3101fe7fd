// Tests which link each failure page has.
import { describe, expect, it } from 'vitest';
import type { StartedSignIn } from '../sign-in/sign-in.ts';
import { actionFor } from './actions.ts';
import { pageNames } from './catalogue.ts';

const attempt: StartedSignIn = {
  tenantId: 'urn:example:platform:tenant-service:v2:/tenants/1',
  clientId: 'old app',
  callbackUrl: 'https://forms.example.org/token-handler/clients/old%20app/callback',
};
const callback = { endpoint: 'callback', page: 'sign-in-expired', status: 400 } as const;

const parametersOf = (href: string) => Object.fromEntries(new URLSearchParams(href.replace(/^auth\?/, '')));

describe('the link of a page', () => {
  it('starts the attempt again, relative to the callback', () => {
    const { label, href } = actionFor({ ...callback, attempt: { ...attempt, returnTo: '/a?b=c&d' } });
    expect([label, href.startsWith('auth?')]).toEqual(['signInAgain', true]);
    expect(parametersOf(href)).toEqual({
      tenant: attempt.tenantId,
      callbackUrl: attempt.callbackUrl,
      returnTo: '/a?b=c&d',
    });
  });

  it('keeps what the sign-in asked of the identity provider, but not prompt=none and no address of a person', () => {
    const asked = { max_age: '60', acr_values: 'mfa', ui_locales: 'fr', login_hint: 'ada@example.org' };
    const {
      tenant: _,
      callbackUrl: __,
      ...kept
    } = parametersOf(actionFor({ ...callback, attempt: { ...attempt, asked: { ...asked, prompt: 'none' } } }).href);
    expect(kept).toEqual({ max_age: '60', acr_values: 'mfa', ui_locales: 'fr' });
    const { href } = actionFor({ ...callback, attempt: { ...attempt, asked: { prompt: 'login' } } });
    expect(parametersOf(href).prompt).toBe('login');
  });

  it.each([
    'https://forms.example.org/signed-in/callback',
    'https://forms.example.org/token-handler/clients/other/callback',
    'javascript:alert(1)',
    '//evil.example/clients/old%20app/callback',
  ])('does not start an attempt with the callback %s again', (callbackUrl) => {
    const { label, href } = actionFor({ ...callback, attempt: { ...attempt, callbackUrl } });
    expect([label, href]).toEqual(['startPage', '/']);
  });

  it('never leaves the origin or names a scheme, whatever the attempt', () => {
    for (const endpoint of ['auth', 'callback', 'logout'] as const)
      for (const page of pageNames)
        for (const status of [400, 404, 409, 429, 500, 503])
          for (const known of [undefined, { ...attempt, returnTo: '//evil.example', tenantId: '"><script>' }]) {
            const { href } = actionFor({ endpoint, page, status, attempt: known });
            expect(href).toMatch(/^(?:|\/|auth\?[\w%&=+.*-]+)$/);
            const at = 'https://forms.example.org/token-handler/clients/old%20app/callback';
            expect(new URL(href, at).origin).toBe('https://forms.example.org');
          }
  });

  it('leads to the start page if the tenant or the client no longer exists', () => {
    for (const page of ['unknown-tenant', 'unknown-client'] as const)
      expect(actionFor({ ...callback, page, status: 404, attempt })).toEqual({ label: 'startPage', href: '/' });
  });
});
