// Tests the configuration check before an upgrade in a cluster: an upgrade with invalid settings changes nothing, and
// an upgrade with valid settings succeeds.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createWorld, fullname, newestHelm, release, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld('formgate-config-check', await newestHelm());
  // The check is enabled from the start, so the first installation runs it too.
  await world.install({ checks: { enabled: true } });
}, 900_000);
afterAll(() => world?.remove());

/**
 * Returns the specifications and data of the release's objects and the names of its pods, without the objects of the
 * check.
 */
async function running(): Promise<string> {
  const kinds = 'deployments,statefulsets,cronjobs,secrets,configmaps,networkpolicies';
  const objects = await world.kubectl(
    ...['get', kinds, '-l', `app.kubernetes.io/instance=${release},app.kubernetes.io/component!=config-check`],
    ...['-o', 'jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.generation}{.spec}{.data}{"\\n"}{end}'],
  );
  const selector = `app.kubernetes.io/component in (forms, token-handler, platform-server, postgres, redis)`;
  return objects + (await world.kubectl('get', 'pods', '-l', selector, '-o', `go-template=${stayingPods}`));
}

/** Leaves out terminating pods, because the pods that the previous upgrade replaced may take a while to stop. */
const stayingPods =
  '{{range .items}}{{if not .metadata.deletionTimestamp}}pod/{{.metadata.name}}{{"\\n"}}{{end}}{{end}}';

const leftovers = () =>
  world.kubectl(
    ...['get', 'secrets,configmaps,networkpolicies,serviceaccounts,jobs', '-o', 'name'],
    ...['-l', `app.kubernetes.io/instance=${release},app.kubernetes.io/component=config-check`],
  );

it('leaves nothing after an installation or upgrade that passed', async () => {
  expect((await leftovers()).trim()).toBe('');
  await world.install({ checks: { enabled: true }, logLevel: 'warn' });
  expect((await leftovers()).trim()).toBe('');
}, 600_000);

it.each([
  [
    'settings that contradict each other',
    { reconciler: { env: { WARN_BEFORE: 'P20D' } } },
    /WARN_BEFORE: must be shorter/,
  ],
  [
    'the database of another service',
    {
      forms: {
        database: { existingSecret: { name: `${fullname}-postgres`, key: 'TOKEN_HANDLER_DATABASE_URL' } },
      },
    },
    /it belongs to another service/,
  ],
  [
    'a client secret that the identity provider rejects',
    { tokenHandler: { account: { secret: { value: 'not the secret of this account' } } } },
    /CLIENT_SECRET: the identity provider rejected/,
  ],
])(
  'refuses %s before anything changes, and its log says why',
  async (_title, values, reason) => {
    const before = await running();
    await expect(world.install({ checks: { enabled: true }, logLevel: 'warn', ...values })).rejects.toThrow();
    expect(await running()).toBe(before);
    const log = await world.kubectl('logs', `job/${fullname}-config-check`, '--all-containers');
    expect(log).toMatch(reason);
    expect(log).not.toContain('not the secret');
  },
  600_000,
);

it('lets the next correct upgrade pass', async () => {
  await world.install({ checks: { enabled: true }, logLevel: 'info' });
  expect((await leftovers()).trim()).toBe('');
}, 600_000);
