// Tests that the identity provider can have two addresses: a public one, for tokens and browsers, and an internal one,
// for the requests of this process.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type KeyServer, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createBearerVerifier } from './identity.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createKeysUrl } from './tenant-issuers.ts';

const audience = 'urn:example:platform:form-service';
const accessPublicUrl = 'https://access.example.org/auth';

let server: KeyServer;
beforeAll(async () => {
  server = await startKeyServer();
});
afterAll(() => server.close());

it('issuers begin with the public URL, and keys are fetched at the URL for calls', async () => {
  const key = await server.addKey('core');
  const { log } = captureLog();
  const tenants = { byRealm: async () => undefined };
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(server.url), log, metrics: createMetrics() });
  const verifier = createBearerVerifier({ signingKeys, accessPublicUrl, tenants, clientId: audience });
  const exp = Math.floor(Date.now() / 1000) + 300;
  const verify = async (iss: string) =>
    verifier.verify(`Bearer ${await signToken(key, { iss, sub: 'somebody', aud: audience, exp })}`, [audience]);
  expect(await verify(`${accessPublicUrl}/realms/core`)).toMatchObject({ subject: 'somebody', isCore: true });
  expect(server.asked).toEqual(['/auth/realms/core/protocol/openid-connect/certs']);
  await expect(verify(server.issuer('core'))).rejects.toMatchObject({ status: 401 });
});
