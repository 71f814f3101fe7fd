// Tests the embedded identity provider over HTTP: the claims of its tokens, and the requests that it rejects.
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../test/support/access.ts';

let access: TestAccess;
beforeAll(async () => {
  access = await startTestAccess();
});
afterAll(() => access.close());

const requestToken = async (form: Record<string, string>, realm = 'demo') => {
  const body = new URLSearchParams(form);
  const response = await fetch(`${access.issuer(realm)}/protocol/openid-connect/token`, { method: 'POST', body });
  const json: Record<string, unknown> = JSON.parse(await response.text());
  return { status: response.status, json };
};

describe('access tokens', () => {
  it('a service account gets a token with the claims that Keycloak gives, verifiable by the published keys', async () => {
    const token = await access.serviceToken('demo', 'demo-admin');
    const keys = createRemoteJWKSet(new URL(`${access.issuer('demo')}/protocol/openid-connect/certs`));
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer: access.issuer('demo'),
      algorithms: ['RS256'],
    });
    const [forms, configuration, handler] = ['form-service', 'configuration-service', 'token-handler'].map(
      access.urns.service,
    );
    expect(protectedHeader).toEqual({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) });
    expect(payload).toEqual({
      iss: access.issuer('demo'),
      sub: expect.stringMatching(/^[0-9a-f-]{36}$/),
      aud: [forms, configuration, handler],
      azp: 'demo-admin',
      typ: 'Bearer',
      jti: expect.any(String),
      iat: expect.any(Number),
      exp: (payload.iat ?? 0) + 300,
      preferred_username: 'service-account-demo-admin',
      realm_access: { roles: [] },
      resource_access: {
        [forms ?? '']: { roles: ['form-admin'] },
        [configuration ?? '']: { roles: ['configuration-admin'] },
        [handler ?? '']: { roles: ['token-handler-admin'] },
      },
    });
  });

  it('the form service has the roles in core that the contracts require', async () => {
    const { aud, resource_access } = decodeJwt(await access.serviceToken('core', 'form-service'));
    const of = (name: string) =>
      (resource_access as Record<string, { roles: string[] }>)[access.urns.service(name)]?.roles;
    expect(of('tenant-service')).toEqual(['platform-service']);
    expect(of('configuration-service')).toEqual(['configured-service', 'configuration-admin']);
    expect(of('event-service')).toEqual(['event-sender']);
    expect(of('notification-service')).toEqual(['subscription-app', 'subscription-admin']);
    expect(aud).toContain(access.urns.service('tenant-service'));
  });

  it('a person gets a token by direct access grant with profile, realm roles and the realm audiences', async () => {
    const claims = decodeJwt(await access.userToken('demo', 'alice@example.com'));
    expect(claims).toMatchObject({
      preferred_username: 'alice@example.com',
      name: 'Alice Applicant',
      email: 'alice@example.com',
      azp: 'demo-cli',
      aud: [access.urns.service('form-service')],
      realm_access: { roles: ['applicant'] },
    });
  });

  it('the subject of an account is the same in another run', async () => {
    const other = await startTestAccess();
    onTestFinished(() => other.close());
    const [here, there] = await Promise.all([access, other].map((one) => one.serviceToken('demo', 'demo-intake')));
    expect(decodeJwt(here ?? '').sub).toBe(decodeJwt(there ?? '').sub);
  });

  it('the client ids and audiences follow the URN prefix', async () => {
    const other = await startTestAccess({ urnPrefix: 'urn:ads' });
    onTestFinished(() => other.close());
    const { azp, aud } = decodeJwt(await other.serviceToken('core', 'form-service'));
    expect(azp).toBe('urn:ads:platform:form-service');
    expect(aud).toContain('urn:ads:platform:tenant-service');
  });
});

describe('the token endpoint', () => {
  it('refuses a wrong client secret, a wrong password and an unknown client', async () => {
    const wrongSecret = { grant_type: 'client_credentials', client_id: 'demo-intake', client_secret: 'wrong' };
    expect(await requestToken(wrongSecret)).toMatchObject({ status: 401, json: { error: 'invalid_client' } });
    const wrongPassword = {
      grant_type: 'password',
      client_id: 'demo-cli',
      username: 'alice@example.com',
      password: 'x',
    };
    expect(await requestToken(wrongPassword)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } });
    const unknown = { grant_type: 'client_credentials', client_id: 'nobody', client_secret: 'x' };
    expect(await requestToken(unknown)).toMatchObject({ status: 401, json: { error: 'invalid_client' } });
  });

  it('allows the password grant to demo-cli only', async () => {
    const form = { grant_type: 'password', username: 'alice@example.com', password: 'alice' };
    const refused = await requestToken({ ...form, client_id: 'demo-intake', client_secret: 'demo-intake-secret' });
    expect(refused).toMatchObject({ status: 400, json: { error: 'invalid_request' } });
  });

  it('accepts client credentials in the form and as HTTP Basic', async () => {
    const basic = await fetch(`${access.issuer('demo')}/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from('demo-intake:demo-intake-secret').toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    expect(basic.status).toBe(200);
    const form = { grant_type: 'client_credentials', client_id: 'demo-intake', client_secret: 'demo-intake-secret' };
    expect((await requestToken(form)).status).toBe(200);
  });

  it('responds to a refresh with new tokens and refresh_expires_in, and rejects a refresh token that was used', async () => {
    const form = { grant_type: 'password', client_id: 'demo-cli', username: 'alice@example.com', password: 'alice' };
    const first = await requestToken(form);
    expect(first.json).toMatchObject({ expires_in: 300, refresh_expires_in: 1800, token_type: 'Bearer' });
    const refresh = {
      grant_type: 'refresh_token',
      client_id: 'demo-cli',
      refresh_token: String(first.json.refresh_token),
    };
    const second = await requestToken(refresh);
    expect(second).toMatchObject({ status: 200, json: { expires_in: 300, refresh_expires_in: 1800 } });
    expect(second.json.refresh_token).not.toBe(first.json.refresh_token);
    expect(decodeJwt(String(second.json.access_token)).email).toBe('alice@example.com');
    expect(await requestToken(refresh)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } });
  });

  it('keeps the refresh token in a realm that does not rotate, with the lifetimes of that realm', async () => {
    await access.addRealm('steady', { rotateRefreshTokens: false, accessTokenLifetime: 60, refreshTokenLifetime: 600 });
    const form = { grant_type: 'password', client_id: 'demo-cli', username: 'alice@example.com', password: 'alice' };
    const first = await requestToken(form, 'steady');
    expect(first.json).toMatchObject({ expires_in: 60, refresh_expires_in: 600 });
    const refresh = {
      grant_type: 'refresh_token',
      client_id: 'demo-cli',
      refresh_token: String(first.json.refresh_token),
    };
    expect((await requestToken(refresh, 'steady')).json.refresh_token).toBe(first.json.refresh_token);
    expect((await requestToken(refresh, 'steady')).status).toBe(200);
  });
});

it('userinfo returns the person of the token, and 401 without a valid token', async () => {
  const ask = (token: string) =>
    fetch(`${access.issuer('demo')}/protocol/openid-connect/userinfo`, {
      headers: { Authorization: `Bearer ${token}` },
    });
  const response = await ask(await access.userToken('demo', 'alice@example.com'));
  expect(await response.json()).toMatchObject({ email: 'alice@example.com', name: 'Alice Applicant' });
  const refused = await Promise.all(
    [await access.foreignToken({}, { key: 'unknown' }), await access.foreignToken({ exp: 1 }), ''].map(ask),
  );
  expect(refused.map(({ status }) => status)).toEqual([401, 401, 401]);
});

it('an unknown realm gets 404 until it is added', async () => {
  expect((await fetch(`${access.issuer('nowhere')}/.well-known/openid-configuration`)).status).toBe(404);
  await access.addRealm('later');
  const { issuer } = (await (await fetch(`${access.issuer('later')}/.well-known/openid-configuration`)).json()) as {
    issuer: string;
  };
  expect(issuer).toBe(access.issuer('later'));
});
