// Tests the commands that /docs shows for calls with a session: a person can paste them into a shell.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DocumentedCommands, documentedCommands } from '../../../test/support/documented-commands.ts';
import { basePath, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';

let world: TargetWorld;
let commands: DocumentedCommands;
beforeAll(async () => {
  world = await startTargetWorld();
  commands = await documentedCommands(world.site);
  const lines = world.person.cookie.split('; ').map((cookie) => `Set-Cookie: ${cookie}\n`);
  commands.write('cookies', lines.join(''));
});
afterAll(async () => {
  commands.close();
  await world.close();
});

it('a target is called, with every documented method, with the commands of /docs', async () => {
  const path = '/token-handler/v1/targets/{targetId}/{path}';
  const calls = commands.calls.filter((call) => call.endsWith(` ${path}`));
  expect(calls.length).toBeGreaterThan(5);
  world.upstream.forget();
  for (const call of calls) {
    const variables = { TARGET_ID: 'api', URL_PATH: 'x', XSRF_TOKEN: world.person.csrf };
    expect(await commands.run(call, variables), call).toMatchObject({ status: 200 });
  }
  expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual(
    calls.map((call) => `${call.split(' ', 1)} ${basePath}/x`),
  );
});
