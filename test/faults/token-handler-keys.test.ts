// A rotation of the key ring under load, with sign-ins, refreshes, reads and writes: the new key is added at the end,
// moved to the front, and then the old key is removed. At each step, the replicas are replaced one by one.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { cookieName } from '../support/sessions.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';

const key = (name: string) => `${name}:${randomBytes(32).toString('base64')}`;
const [oldKey, newKey] = [key('old'), key('new')];

let world: TargetWorld;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis', env: { KEY_RING: oldKey } });
});
afterAll(() => world.close());

/** Replicas behind a load balancer, which sends requests only to running replicas. */
class Fleet {
  readonly #serving: RunningService[] = [];
  #turn = 0;

  async start(count: number, ring: string): Promise<void> {
    for (let made = 0; made < count; made += 1) this.#serving.push(await world.replica({ KEY_RING: ring }));
  }

  /** Replaces the replicas one by one: a new replica runs before an old one drains. */
  async roll(ring: string): Promise<void> {
    for (let left = this.#serving.length; left > 0; left -= 1) {
      this.#serving.push(await world.replica({ KEY_RING: ring }));
      await delay(150);
      await this.#serving.shift()?.close();
    }
  }

  next(): string {
    this.#turn += 1;
    return this.#serving[this.#turn % this.#serving.length]?.url ?? '';
  }

  close = () => Promise.all(this.#serving.map((replica) => replica.close()));
}

const fleet = new Fleet();
afterAll(() => fleet.close());

/** Signs a person in. A different replica serves each step. */
async function enter(): Promise<Person> {
  const at = (address: URL | string) => {
    const { pathname, search } = new URL(address);
    return new URL(pathname + search, fleet.next());
  };
  const browser = createSiteBrowser();
  const begun = await browser.request(at(world.authUrl()));
  const isCallback = (address: URL) => address.pathname.endsWith('/callback');
  const form = await browser.follow(begun, isCallback);
  const sent = await browser.submit(form, { username: 'alice@example.com', password: 'alice' });
  const { location } = await browser.follow(sent, isCallback);
  const landed = at(location ?? '');
  const sentCookies = browser.cookies(new URL(landed.pathname, begun.url.origin));
  const open = sentCookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const ended = await createSiteBrowser().request(landed, { headers: { cookie: open } });
  expect(ended.status).toBe(302);
  const cookies = Object.fromEntries(ended.setCookies.map((line) => line.split(';', 1)[0]?.split('=', 2) ?? []));
  const cookie = [cookieName, 'XSRF-TOKEN'].map((name) => `${name}=${cookies[name]}`).join('; ');
  const list = await world.send({
    as: { cookie, csrf: '', handle: '' },
    url: fleet.next(),
    target: '/token-handler/v1/sessions',
  });
  return { cookie, csrf: cookies['XSRF-TOKEN'] ?? '', handle: JSON.parse(list.text)[0].id };
}

interface Load {
  statuses: number[];
  stop(): Promise<void>;
}

function start(people: Person[]): Load {
  let isOver = false;
  const statuses: number[] = [];
  const work = people.map(async (as, index) => {
    for (let call = index; !isOver; call += 1) {
      const method = call % 2 ? 'POST' : 'GET';
      const sent = await world.send({ as, method, url: fleet.next(), ...(method === 'POST' && { body: 'x' }) });
      statuses.push(sent.status);
      await delay(20);
    }
  });
  return {
    statuses,
    async stop() {
      isOver = true;
      await Promise.all(work);
    },
  };
}

const sealedUnder = async (name: string) => {
  const rows = await world.handler.rows<{ client_secret: string; registration_access_token: string }>(
    'SELECT client_secret, registration_access_token FROM client_registrations',
  );
  return rows.every((row) => Object.values(row).every((sealed) => sealed.startsWith(`${name}.`)));
};

it('a key rotation signs no one out, and all stored secrets are encrypted with the new key afterwards', async () => {
  await fleet.start(2, oldKey);
  const people = [await enter(), await enter(), await enter()];
  const load = start(people);
  await fleet.roll(`${oldKey},${newKey}`);
  people.push(await enter());
  await fleet.roll(`${newKey},${oldKey}`);
  // A refresh encrypts the tokens with the new key.
  const [refreshed] = people as [Person];
  await world.shortenToken(refreshed.handle, 25_000);
  const sealed = () => world.redis?.command('HGET', `{sess:${refreshed.handle}}:tokens`, 'sealed');
  await expect.poll(sealed, { interval: 100 }).toMatch(/^new\./);
  const young = [await enter(), await enter()];
  await expect.poll(() => sealedUnder('new'), { interval: 100 }).toBe(true);
  for (const as of people) expect((await world.send({ as, url: fleet.next() })).status).toBe(200);
  await expect.poll(() => load.statuses.length, { interval: 100 }).toBeGreaterThan(100);
  await load.stop();
  expect(new Set(load.statuses)).toEqual(new Set([200]));

  // The old key can be removed, because all remaining sessions began after the old key had encrypted its last session.
  const rest = start(young);
  await fleet.roll(newKey);
  young.push(await enter());
  await rest.stop();
  expect(new Set(rest.statuses)).toEqual(new Set([200]));
  process.stdout.write(`key rotation: ${load.statuses.length + rest.statuses.length} calls, all 200\n`);
});
