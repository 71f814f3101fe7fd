import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, sendJson, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createServiceAccount, type ServiceAccount } from './service-account.ts';

const second = 1_000;

let server: FaultServer;
let calls: PlatformCalls;
let account: ServiceAccount;
let lifetime: number;

beforeEach(async () => {
  lifetime = 300;
  let issued = 0;
  server = await startFaultServer((response) => {
    issued += 1;
    sendJson(response, { access_token: `token-${issued}`, expires_in: lifetime, token_type: 'Bearer' });
  });
  calls = createPlatformCalls();
  account = create();
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

const create = () =>
  createServiceAccount({
    ...calls.options,
    accessUrl: `${server.url}/auth`,
    clientId: 'urn:example:platform:form-service',
    clientSecret: 'canary secret&=',
  });
/** Sends a request in the same way, which arrives after any other request that has begun. */
const marker = () => create().token();

describe('the token of the service account', () => {
  it('is requested with client credentials at realm core', async () => {
    expect(await account.token()).toBe('token-1');
    expect(server.requests[0]).toMatchObject({
      method: 'POST',
      target: '/auth/realms/core/protocol/openid-connect/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(Object.fromEntries(new URLSearchParams(server.requests[0]?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'urn:example:platform:form-service',
      client_secret: 'canary secret&=',
    });
  });

  it('is cached until 60 s before its expiry', async () => {
    await account.token();
    calls.advance(240 * second - 1);
    expect(await account.token()).toBe('token-1');
    await marker();
    expect(server.requests).toHaveLength(2);
  });

  it('is renewed in the background within 60 s of its expiry, while the old one is used', async () => {
    await account.token();
    calls.advance(240 * second);
    expect(await account.token()).toBe('token-1');
    await expect.poll(() => account.token()).toBe('token-2');
    expect(server.requests).toHaveLength(2);
  });

  it('with a short lifetime is renewed when a quarter of it is left', async () => {
    lifetime = 20;
    await account.token();
    calls.advance(15 * second);
    await account.token();
    await expect.poll(() => account.token()).toBe('token-2');
  });

  it('is not used shortly before its expiry: the call waits for a new one', async () => {
    await account.token();
    calls.advance(290 * second);
    expect(await account.token()).toBe('token-2');
  });

  it('is requested once by a hundred concurrent calls', async () => {
    const tokens = await Promise.all(Array.from({ length: 100 }, () => account.token()));
    expect(new Set(tokens)).toEqual(new Set(['token-1']));
    expect(server.requests).toHaveLength(1);
  });

  it('is used until its expiry while the identity provider is down', async () => {
    await account.token();
    server.behave(answerJson({}, 500));
    calls.advance(250 * second);
    expect(await account.token()).toBe('token-1');
    await expect.poll(() => server.requests.length).toBe(2);
    await expect(marker()).rejects.toMatchObject({ kind: 'failed' });
    expect(await account.token()).toBe('token-1');
    await expect(marker()).rejects.toMatchObject({ kind: 'failed' });
    expect(server.requests).toHaveLength(4);
  });

  it('that a service rejects is replaced once for all calls', async () => {
    await account.token();
    expect(await Promise.all([account.renew('token-1'), account.renew('token-1')])).toEqual(['token-2', 'token-2']);
    expect(await account.token()).toBe('token-2');
    expect(server.requests).toHaveLength(2);
  });

  it('that one service rejects while the identity provider is down keeps working for the others', async () => {
    await account.token();
    server.behave(answerJson({}, 500));
    const renewal = account.renew('token-1');
    expect(await account.token()).toBe('token-1');
    await expect(renewal).rejects.toMatchObject({ service: 'identity-provider', kind: 'failed' });
    expect(await account.token()).toBe('token-1');
  });

  it('that a service rejects is replaced also after the clock was set back', async () => {
    await account.token();
    expect(await account.renew('token-1')).toBe('token-2');
    calls.advance(-3_600 * second);
    expect(await account.renew('token-2')).toBe('token-3');
  });

  it('that was replaced before its rejection is replaced by the current one', async () => {
    await account.token();
    await account.renew('token-1');
    calls.advance(10 * second);
    expect(await account.renew('token-1')).toBe('token-2');
    expect(server.requests).toHaveLength(2);
  });

  it('is replaced at most once in 5 s, even if many are rejected', async () => {
    await account.token();
    expect(await account.renew('token-1')).toBe('token-2');
    expect(await account.renew('token-2')).toBe('token-2');
    calls.advance(5 * second);
    expect(await account.renew('token-2')).toBe('token-3');
  });
});

describe('a sign-in of the service account that fails', () => {
  it.each([400, 401, 403])('with status %i is PlatformError denied of the identity provider', async (status) => {
    server.behave(answerJson({ error: 'invalid_client' }, status));
    await expect(account.token()).rejects.toMatchObject({
      service: 'identity-provider',
      kind: 'denied',
      upstreamStatus: status,
    });
  });

  it('is retried twice on 503, then an error; the next call tries again', async () => {
    server.behave((response, _, count) =>
      count <= 3 ? sendJson(response, {}, 503) : sendJson(response, { access_token: 'late', expires_in: 60 }),
    );
    await expect(account.token()).rejects.toMatchObject({ kind: 'failed', upstreamStatus: 503 });
    expect(await account.token()).toBe('late');
  });

  it('with a response without a token is PlatformError failed', async () => {
    server.behave(answerJson({ expires_in: 60 }));
    await expect(account.token()).rejects.toMatchObject({ kind: 'failed', reason: 'malformed at /access_token' });
  });

  it('logs neither the secret nor a token', async () => {
    await account.token();
    server.behave(answerJson({ error: 'canary', access_token: 'canary' }, 401));
    await account.renew('token-1').catch((error: unknown) => calls.captured.log.error({ err: error }, 'failed'));
    expect(calls.captured.lines()).toHaveLength(2);
    expect(calls.captured.text()).not.toMatch(/canary|token-1/);
  });
});
