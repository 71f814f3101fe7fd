// Runs the token handler against a scripted provider: one test for each applicable module of the conformance suite's
// plans for relying parties. docs/conformance.md lists the modules.
import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';
import { makeKey, type Script, signToken, unsigned } from './realm.ts';
import {
  type ConformanceWorld,
  expectAccepted,
  expectRejected,
  type ModuleRun,
  startConformanceWorld,
} from './world.ts';

let world: ConformanceWorld;
let browser: SiteBrowser;
beforeAll(async () => {
  world = await startConformanceWorld();
});
afterAll(() => world.close());
beforeEach(() => {
  browser = createSiteBrowser();
});

const accepts = (run: ModuleRun) => expectAccepted(run, browser);
const rejects = (run: ModuleRun, status?: number) => expectRejected(run, browser, status);
const rejectsClaims = async (claims: Record<string, unknown>) => rejects(await world.module({ claims }));

describe('oidcc-client-basic-certification-test-plan', () => {
  it('oidcc-client-test', async () => {
    await accepts(await world.module());
  });

  it('oidcc-client-test-invalid-iss', async () => {
    await rejectsClaims({ iss: 'https://other.example.org' });
  });

  it('oidcc-client-test-missing-sub', async () => {
    await rejectsClaims({ sub: undefined });
  });

  it('oidcc-client-test-invalid-aud', async () => {
    await rejectsClaims({ aud: 'another client' });
  });

  it('oidcc-client-test-missing-iat', async () => {
    await rejectsClaims({ iat: undefined });
  });

  it('oidcc-client-test-kid-absent-single-jwks', async () => {
    const run = await world.module({ header: { kid: undefined } });
    await run.realm.publish([run.realm.key], { kid: undefined });
    await accepts(run);
  });

  it('oidcc-client-test-kid-absent-multiple-jwks', async () => {
    const run = await world.module({ header: { kid: undefined } });
    await run.realm.publish([await makeKey('RS256'), run.realm.key], { kid: undefined });
    // The module would also accept a relying party that tries every key. The token handler rejects the ID token.
    await rejects(run);
  });

  it('oidcc-client-test-idtoken-sig-rs256', async () => {
    await accepts(await world.module({ discovery: { id_token_signing_alg_values_supported: ['RS256'] } }));
  });

  it('oidcc-client-test-idtoken-sig-none', async () => {
    await rejectsUnsigned();
  });

  it('oidcc-client-test-invalid-sig-rs256', async () => {
    await rejects(await world.module({ alter: spoilSignature }));
  });

  it('oidcc-client-test-nonce-invalid', async () => {
    // The response is 400 and not 502: another person may have injected the code, so the fault may be in the callback
    // instead of the provider.
    await rejects(await world.module({ claims: { nonce: randomUUID() } }), 400);
  });

  it('oidcc-client-test-client-secret-basic', async () => {
    await accepts(await world.module({ discovery: { token_endpoint_auth_methods_supported: undefined } }));
  });
});

/** Expects that the token handler rejects an unsigned ID token. The modules allow this. */
async function rejectsUnsigned(): Promise<void> {
  const claims = { at_hash: undefined, c_hash: undefined };
  await rejects(await world.module({ claims, alter: (_token, altered) => unsigned(altered) }));
}

const spoilSignature = (token: string) => {
  const [head, body, signature = ''] = token.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  bytes[5] = (bytes[5] ?? 0) ^ 0x5a;
  return [head, body, bytes.toString('base64url')].join('.');
};

describe('oidcc-client-config-certification-test-plan', () => {
  it('oidcc-client-test-discovery-openid-config', async () => {
    const run = await world.module();
    run.realm.calls.length = 0;
    await accepts(run);
    expect(run.realm.calls[0]).toBe('.well-known/openid-configuration');
  });

  it('oidcc-client-test-discovery-jwks-uri-keys', async () => {
    const run = await world.module();
    run.realm.jwksPath = `certs-${randomUUID()}`;
    await accepts(run);
    expect(run.realm.calls).toContain(run.realm.jwksPath);
  });

  it('oidcc-client-test-discovery-issuer-mismatch', async () => {
    const run = await world.module();
    run.realm.script = { discovery: { issuer: 'https://other.example.org' } };
    const { status, location } = await run.begin(browser);
    expect([status, location]).toEqual([502, undefined]);
  });

  it('oidcc-client-test-idtoken-sig-none', async () => {
    await rejectsUnsigned();
  });

  it('oidcc-client-test-signing-key-rotation-just-before-signing', async () => {
    const run = await world.module();
    run.realm.script = { beforeSigning: () => run.realm.rotate() };
    await accepts(run);
    await accepts(run);
  });

  it('oidcc-client-test-signing-key-rotation', async () => {
    const run = await world.module();
    await accepts(run);
    await run.realm.rotate();
    await accepts(run);
    expect(run.realm.calls.filter((call) => call === 'certs')).toHaveLength(2);
  });
});

describe('oidcc-client-rp-initiated-logout-rp-basic', () => {
  it('oidcc-client-test-rp-init-logout', async () => {
    const run = await world.module();
    await accepts(run);
    const { atProvider, back } = await run.logOut(browser);
    expect(atProvider?.searchParams.get('post_logout_redirect_uri')).toBe(back?.href);
    expect(back?.href).toBe(`${world.handler.url}/`);
    expect(await run.personOf(browser)).toBeUndefined();
    expect(run.realm.logoutAnswers.map(({ status }) => status)).toEqual([200]);
    expect(run.realm.violations).toEqual([]);
  });
});

describe('oidcc-client-back-channel-logout-rp-basic', () => {
  /**
   * The person is signed in with two browsers, and logs out in one of them. The provider then sends a logout token. If
   * the token is valid, it ends the other browser's session.
   */
  async function logsOut(run: ModuleRun, status: 200 | 400): Promise<void> {
    const other = createSiteBrowser();
    await run.signIn(browser);
    await run.signIn(other);
    const { back } = await run.logOut(browser);
    expect(back?.href).toBe(`${world.handler.url}/`);
    expect(run.realm.logoutAnswers).toEqual([{ status, cacheControl: 'no-store' }]);
    expect(await run.personOf(browser)).toBeUndefined();
    expect(await run.personOf(other)).toBe(status === 200 ? undefined : run.realm.subject);
    expect(run.realm.violations).toEqual([]);
  }
  const refuses = async (script: Script) => logsOut(await world.module(script), 400);

  it('oidcc-client-test-rp-backchannel-rpinitlogout', async () => {
    await logsOut(await world.module(), 200);
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-alg-none', async () => {
    await refuses({ signLogout: unsigned });
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-no-event', async () => {
    await refuses({ logoutClaims: { events: undefined } });
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-with-nonce', async () => {
    await refuses({ logoutClaims: { nonce: randomUUID() } });
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-wrong-alg', async () => {
    const run = await world.module();
    const key = await makeKey('ES256');
    await run.realm.publish([run.realm.key, key]);
    run.realm.script = { signLogout: (claims) => signToken(key, claims, { typ: 'logout+jwt' }) };
    await logsOut(run, 400);
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-wrong-aud', async () => {
    await refuses({ logoutClaims: { aud: 'another client' } });
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-wrong-event', async () => {
    await refuses({ logoutClaims: { events: { 'https://other.example.org/event': {} } } });
  });

  it('oidcc-client-test-rp-backchannel-rpinitlogout-wrong-iss', async () => {
    await refuses({ logoutClaims: { iss: 'https://other.example.org' } });
  });
});

describe('further modules', () => {
  it('oidcc-client-test-missing-aud', async () => {
    await rejectsClaims({ aud: undefined });
  });

  it('oidcc-client-test-ignores-unparseable-key-in-jwks', async () => {
    const run = await world.module();
    const [key] = run.realm.published;
    const unusable = [{ kty: 'AKP', alg: 'ML-DSA-1', pub: 'AA' }, { kty: 'unknown' }, { kty: 'RSA' }];
    run.realm.published = [...unusable.map((jwk) => ({ ...jwk, kid: randomUUID() })), ...(key ? [key] : [])];
    await accepts(run);
  });

  it('oidcc-client-test-invalid-sig-es256', async () => {
    const run = await world.module({ alter: spoilSignature });
    run.realm.key = await makeKey('ES256');
    await run.realm.publish([run.realm.key]);
    await rejects(run);
  });

  it('oidcc-client-test-invalid-sig-hs256', async () => {
    const run = await world.module({ discovery: { id_token_signing_alg_values_supported: ['HS256'] } });
    run.realm.script.alter = (_token, claims) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('x'.repeat(32)));
    await rejects(run);
  });
});
