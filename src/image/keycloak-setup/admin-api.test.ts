// Tests what an administrator reads if --url does not lead to Keycloak itself, and where the password is sent.
import { afterEach, expect, it } from 'vitest';
import { type FaultServer, sendJson, startFaultServer } from '../../../test/support/fault-server.ts';
import { createAdminApi, SetupError } from './admin-api.ts';

const servers: FaultServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function start(respond: Parameters<typeof startFaultServer>[0]): Promise<FaultServer> {
  const server = await startFaultServer(respond);
  servers.push(server);
  return server;
}

/** Reads a realm from the server, and returns the error. */
const failureOf = ({ url }: FaultServer): Promise<unknown> =>
  createAdminApi({ url, user: 'admin', password: 'canary' })
    .read('/core')
    .catch((error: unknown) => error);

it.each([
  ['a web page', '<!doctype html>'],
  ['nothing', ''],
  ['JSON without a token', '{}'],
  ['null', 'null'],
])('a sign-in that gets %s says that the URL is wrong', async (_what, body) => {
  const failure = await failureOf(await start((response) => response.end(body)));
  expect(failure).toBeInstanceOf(SetupError);
  expect((failure as Error).message).toMatch(
    /^http:\/\/127\.0\.0\.1:\d+ does not respond like Keycloak .*check --url$/,
  );
});

it('a web page instead of a realm says that the URL is wrong', async () => {
  const server = await start((response, { target }) => {
    if (target.startsWith('/realms/')) sendJson(response, { access_token: 'token' });
    else response.end('<!doctype html>');
  });
  expect(await failureOf(server)).toMatchObject({ message: expect.stringContaining('to reading /core; check --url') });
});

it('a response that breaks off says that Keycloak cannot be reached', async () => {
  const server = await start((response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('{', () => response.destroy());
  });
  const failure = await failureOf(server);
  expect(failure).toBeInstanceOf(SetupError);
  expect((failure as Error).message).toContain('cannot be reached');
});

it('the password is not sent to the address of a redirect', async () => {
  const other = await start((response) => sendJson(response, { access_token: 'token' }));
  const server = await start((response) => response.writeHead(307, { Location: other.url }).end());
  const failure = await failureOf(server);
  expect(failure).toMatchObject({ message: 'Keycloak responded with 307 to signing in' });
  expect(other.requests).toEqual([]);
});
