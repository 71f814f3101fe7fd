// Tests that the form service survives a tenant that has many large form definitions, and that others notice nothing.
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { draft, type FormProcess, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { anonymous, permit } from '../../../test/support/forms.ts';

/** Together, the definitions would take about 600 MiB of memory. */
const count = 60;
let world: FormWorld;
let forms: FormProcess;
beforeAll(async () => {
  world = await startFormWorld();
  // 95,000 empty objects are 190,000 values. With two million characters, they take about 10 MiB of memory.
  const filler = { objects: Array(95_000).fill({}), text: 'x'.repeat(2_000_000) };
  const definition = JSON.stringify({ name: 'Large', anonymousApply: true, filler });
  await world.platformPool.query(
    `WITH ids AS (SELECT 'large-' || n AS id FROM generate_series(1, $3) n), added AS (
       INSERT INTO configurations (tenant, namespace, name)
       SELECT tenant, 'form-service', ids.id FROM ids, (SELECT DISTINCT tenant FROM configurations WHERE name = $2) t)
     INSERT INTO configuration_revisions (tenant, namespace, name, revision, created, last_updated, configuration)
     SELECT tenant, 'form-service', ids.id, 0, now(), now(), concat('{"id":"', ids.id, '",', substr($1::text, 2))::json
     FROM ids, (SELECT DISTINCT tenant FROM configurations WHERE name = $2) t`,
    [definition, 'form-service', count],
  );
});
beforeEach(async () => {
  forms = await world.spawn();
});
afterEach(() => forms.close());
afterAll(() => world.close());

async function residentMiB(): Promise<number> {
  const text = await (await fetch(`${forms.metricsUrl}/metrics`)).text();
  const [, bytes = ''] = /^process_resident_memory_bytes\S* (\S+)$/m.exec(text) ?? [];
  return Number(bytes) / 1_048_576;
}

const create = (definitionId: string) =>
  forms.ask('POST', '', { as: 'intake', body: { definitionId, applicant: anonymous() } });

it('whoever uses large definitions of a tenant waits for them, and the process does not run out of memory', async () => {
  await draft(forms);
  const statuses = new Set<number>();
  let peak = 0;
  for (let nth = 1; nth <= count; nth += 1) {
    const { status, text } = await create(`large-${nth}`);
    expect([201, 503], text.slice(0, 300)).toContain(status);
    statuses.add(status);
    peak = Math.max(peak, await residentMiB());
  }
  expect([...statuses]).toEqual([201, 503]);
  expect(peak).toBeLessThan(400);
  // Its other definition is available again as soon as the budget has grown.
  await expect.poll(async () => (await create(permit.id)).status).toBe(201);
});

it('nor does it if all of these definitions are asked for at the same time', async () => {
  await draft(forms);
  let peak = 0;
  let isDone = false;
  const watching = (async () => {
    while (!isDone) peak = Math.max(peak, await residentMiB());
  })();
  const answers = await Promise.all(
    Array.from({ length: 2 * count }, (_, nth) => create(`large-${(nth % count) + 1}`)),
  );
  isDone = true;
  await watching;
  expect(answers.map(({ status }) => status).filter((status) => status !== 201 && status !== 503)).toEqual([]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 503]));
  expect(peak).toBeLessThan(400);
  expect(await residentMiB()).toBeGreaterThan(0);
});
