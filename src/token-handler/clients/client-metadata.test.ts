// Tests the metadata that is sent when a client is registered, and the paths of the client's endpoints.
import { describe, expect, it } from 'vitest';
import { clientMetadata } from './client-metadata.ts';
import { clientPath, logoutUrl } from './client-path.ts';

describe('the metadata of a client', () => {
  const redirectUris = [
    'https://permits.example.org/a/cb',
    'https://permits.example.org/b/cb',
    'http://localhost:1/cb',
  ];
  const asked = { name: 'permits-web (registration 1)', redirectUris };

  it('asks for a confidential client with codes and refresh tokens, and nothing else', () => {
    expect(clientMetadata({ id: 'permits-web', keycloakLogout: false }, asked, undefined)).toEqual({
      client_name: 'permits-web (registration 1)',
      redirect_uris: redirectUris,
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_basic',
    });
  });

  it('allows a logout at the identity provider to return to the roots of its hosts, if the client has such a logout', () => {
    const metadata = clientMetadata({ id: 'permits-web', keycloakLogout: true }, asked, undefined);
    expect(metadata.post_logout_redirect_uris).toEqual(['https://permits.example.org/', 'http://localhost:1/']);
  });

  it('asks for back-channel logouts with session ids at the public URL, if there is one', () => {
    const metadata = clientMetadata({ id: 'permits web', keycloakLogout: false }, asked, 'https://th.example.org');
    expect(metadata).toMatchObject({
      backchannel_logout_uri: 'https://th.example.org/token-handler/v1/clients/permits%20web/backchannel-logout',
      backchannel_logout_session_required: true,
    });
    expect(metadata).not.toHaveProperty('post_logout_redirect_uris');
  });
});

describe('the path of a client', () => {
  const of = (callbackUrl: string, clientId = 'web') => clientPath({ callbackUrl, clientId });

  it.each([
    ['https://a.example/token-handler/clients/web/callback', 'web', '/token-handler/clients/web'],
    ['https://a.example/x/y/clients/web/callback?z=/q', 'web', '/x/y/clients/web'],
    ['https://a.example/clients/permits%20web/callback', 'permits web', '/clients/permits%20web'],
  ])('is that of its callback, which a proxy may have moved: %s', (callbackUrl, clientId, path) => {
    expect(of(callbackUrl, clientId)).toBe(path);
  });

  it.each([
    'https://a.example/cb',
    'https://a.example/',
    'https://a.example/clients/web/callback/more',
    'https://a.example/clients/other/callback',
    'https://a.example/webclients/web/callbacks',
    'https://a.example/clients/permits web/callback',
    'https://a.example/?x=/clients/web/callback',
  ])('is unknown for another callback: %s', (callbackUrl) => {
    expect(of(callbackUrl)).toBeUndefined();
  });
});

describe('the logout URL', () => {
  it('is beside the callback of the sign-in', () => {
    const callbackUrl = 'https://a.example:8443/x/clients/web/callback';
    expect(logoutUrl({ callbackUrl, clientId: 'web' })).toBe('https://a.example:8443/x/clients/web/logout');
  });

  it('is at the usual path for a callback elsewhere', () => {
    expect(logoutUrl({ callbackUrl: 'https://a.example/cb?x=1', clientId: 'permits web' })).toBe(
      'https://a.example/token-handler/clients/permits%20web/logout',
    );
  });
});
