// Tests that the calls and log lines of a delivery have the id of the request that wrote the delivered row.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';

const platformLog = captureLog();
let world: FormWorld;
let replica: FormReplica;
beforeAll(async () => {
  world = await startFormWorld({ log: platformLog });
  replica = await world.start({ env: { SUBSCRIBER_REMOVAL_DELAY: 'PT0.1S', NOTICE_TIME: 'PT0.01S' } });
});
afterAll(() => world.close());

interface Row {
  kind: string;
  request: string | null;
}

const rowsOf = async (id: string) => {
  const sql = 'SELECT kind, request_id AS request FROM outbox WHERE form_id = $1 ORDER BY sequence';
  return (await world.pool.query<Row>(sql, [id])).rows;
};

/** Returns the ids of the logged requests whose path or route matches the pattern. */
const logged = (text: string, pattern: string) =>
  text
    .split('\n')
    .filter((line) => line.includes('"route"'))
    .map((line) => JSON.parse(line) as { requestId: string; route: string; method: string })
    .filter(({ method, route }) => `${method} ${route}` === pattern)
    .map(({ requestId }) => requestId);

it('sends the id of the request with every delivery, also with those that follow a deletion', async () => {
  const id = await draft(replica, 'somebody@example.org');
  const admin = { as: 'admin' as const };
  const removed = await replica.ask('DELETE', `/${id}`, admin);
  expect(removed.status).toBe(204);
  const kinds = async () => (await rowsOf(id)).map(({ kind }) => kind);
  await expect.poll(kinds).toContain('remove-subscriber');
  await drained(world.pool);

  const rows = await rowsOf(id);
  const requestOf = (kind: string) => rows.find((row) => row.kind === kind)?.request;
  expect(requestOf('subscribe')).toBe(requestOf('form-created'));
  expect(requestOf('remove-subscriber')).toBe(requestOf('form-deleted'));
  expect(logged(replica.logText(), 'POST /form/v1/forms')).toEqual([requestOf('form-created')]);
  expect(logged(replica.logText(), 'DELETE /form/v1/forms/:formId')).toEqual([requestOf('form-deleted')]);
  expect(logged(platformLog.text(), 'POST /event/v1/events').toSorted()).toEqual(
    [requestOf('form-created'), requestOf('form-deleted')].toSorted(),
  );
});
