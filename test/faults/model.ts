// Checks what must hold at the end of a run, regardless of the faults: no acknowledged write is lost, nothing has
// happened twice, and every notice was sent in the order of the events.
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import type { World } from '../adversary/world/world.ts';
import type { Effects } from './effects.ts';
import type { Application } from './users/applications.ts';
import type { Call } from './users/caller.ts';

const subjects = { created: / draft is saved$/, submitted: /^We received your /, deleted: / is deleted$/ };

/**
 * Milliseconds that the outbox and the mails may take after the last fault. After several failures, a delivery pauses
 * for up to five minutes.
 */
const patience = 330_000;

interface FormRow {
  id: string;
  status: string;
  data: unknown;
  address: string;
}

/** Checks each application against the form in the database, and returns a line for each violation. */
export async function judgeForms(applications: Application[], { addresses }: World): Promise<string[]> {
  return withClient(addresses.databases.forms, async (client) => {
    const { rows } = await client.query<FormRow>(
      "SELECT id, status, data, applicant -> 'channels' -> 0 ->> 'address' AS address FROM forms",
    );
    const forms = Map.groupBy(rows, ({ address }) => address);
    return applications.flatMap((application) => judgeForm(application, forms.get(application.address) ?? []));
  });
}

function judgeForm({ address, formId, done, begun, possible }: Application, found: FormRow[]): string[] {
  const problem = (what: string) => [`the application of ${address} ${what} (${[...done, begun].join(', ')})`];
  if (found.length > 1) return problem(`has ${found.length} forms`);
  const [form] = found;
  const mayBeGone = done.includes('deleted') || begun === 'deleted';
  if (!form) return mayBeGone || !done.includes('created') ? [] : problem('was lost');
  if (done.includes('deleted')) return problem('is still there, although it was deleted');
  if (formId !== undefined && form.id !== formId) return problem('has another form than was acknowledged');
  if (done.includes('submitted') && form.status !== 'Submitted') return problem(`is ${form.status}`);
  if (!done.includes('submitted') && begun !== 'submitted' && form.status !== 'Draft')
    return problem(`is ${form.status}`);
  if (formId !== undefined && !possible.some((one) => isDeepStrictEqual(one, form.data ?? {})))
    return problem(`lost an acknowledged save: it contains ${JSON.stringify(form.data)}`);
  return [];
}

/**
 * Waits until all events in the outbox are delivered and all mails are sent. Then reports the forms whose events were
 * accepted out of order, the forms with two events of the same kind, and the entries of the quarantine.
 */
export async function judgeEvents(world: World): Promise<string[]> {
  const { databases } = world.addresses;
  const waiting = async () => {
    const outbox = await ask<{ n: number }>(
      databases.forms,
      "SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL AND lane = 'events'",
    );
    const platform = await ask<{ n: number }>(
      databases.platform,
      'SELECT (SELECT count(*) FROM events WHERE routed IS NULL)::int + (SELECT count(*) FROM deliveries)::int AS n',
    );
    return (outbox[0]?.n ?? 0) + (platform[0]?.n ?? 0);
  };
  for (const deadline = Date.now() + patience; (await waiting()) > 0; await delay(200))
    if (Date.now() > deadline)
      return [`${await waiting()} events or notices wait ${patience / 1_000} s after the last fault`];
  const rows = await ask<{ form_id: string; kinds: string[]; in_order: boolean }>(
    databases.forms,
    `SELECT form_id, array_agg(kind ORDER BY sequence) AS kinds, array_agg(accepted ORDER BY sequence)
      = array_agg(accepted ORDER BY accepted) AS in_order FROM outbox WHERE lane = 'events' GROUP BY form_id`,
  );
  const quarantined = await ask<{ reason: string }>(databases.forms, 'SELECT reason FROM quarantine');
  return [
    ...rows
      .filter(({ in_order }) => !in_order)
      .map(({ form_id }) => `the events of ${form_id} were delivered out of order`),
    ...rows
      .filter(({ kinds }) => new Set(kinds).size < kinds.length)
      .map(({ form_id, kinds }) => `the form ${form_id} has events twice: ${kinds.join(', ')}`),
    ...quarantined.map(({ reason }) => `a fault led to a quarantine: ${reason}`),
  ];
}

export interface NoticeCount {
  problems: string[];
  notices: number;
  /** Number of notices that were sent more than once. A lost response of the mail server can cause a repeat. */
  repeated: number;
}

/**
 * Returns the ids of the forms that were deleted before the notification service knew their applicants. The deletion
 * removes the address, so the applicant cannot be notified of what happened to the form (src/forms/outbox/delivery.ts).
 */
export async function findUnnotifiable(formsDatabase: string): Promise<Set<string>> {
  const sql = "SELECT form_id FROM outbox WHERE kind = 'form-deleted' AND facts ->> 'subscriberId' IS NULL";
  const rows = await ask<{ form_id: string }>(formsDatabase, sql);
  return new Set(rows.map(({ form_id }) => form_id));
}

/**
 * Checks that each event of an application has a notice, and that the notices arrived in the order of the events. Only
 * the first copy of a notice counts for the order. The forms in `unnotifiable` may have fewer notices, or none.
 */
export function judgeNotices(
  applications: Application[],
  mailbox: Pick<World['mailbox'], 'messages'>,
  unnotifiable: ReadonlySet<string>,
): NoticeCount {
  const byAddress = Map.groupBy([...mailbox.messages()].reverse(), ({ to }) => to);
  const count: NoticeCount = { problems: [], notices: 0, repeated: 0 };
  for (const { address, formId, done } of applications) {
    const mustHaveAll = formId === undefined || !unnotifiable.has(formId);
    const mails = byAddress.get(address) ?? [];
    const positions = done.map((event) => {
      const matching = mails.flatMap(({ subject }, index) => (subjects[event].test(subject) ? [index] : []));
      count.notices += matching.length;
      count.repeated += Math.max(0, matching.length - 1);
      if (matching.length === 0 && mustHaveAll)
        count.problems.push(`${address} got no notice that the form was ${event} (${done.join(', ')})`);
      return matching[0];
    });
    const arrived = positions.filter((position) => position !== undefined);
    if (arrived.some((position, index) => index > 0 && position < (arrived[index - 1] ?? 0)))
      count.problems.push(
        `the notices to ${address} are out of order: ${mails.map(({ subject }) => subject).join('; ')}`,
      );
  }
  return count;
}

export function judgeEffects(calls: Call[], { counts }: Effects): string[] {
  return calls.flatMap(({ id, status }) => {
    const effects = counts.get(id) ?? 0;
    if (effects > 1) return [`a request with an effect reached the upstream ${effects} times (status ${status})`];
    if (status === 201 && effects === 0) return ['a request was acknowledged, but did not reach the upstream'];
    if (status !== undefined && ![201, 502, 503, 504].includes(status))
      return [`a request with an effect got ${status}`];
    return [];
  });
}

async function ask<R extends pg.QueryResultRow>(url: string, sql: string): Promise<R[]> {
  return withClient(url, async (client) => (await client.query<R>(sql)).rows);
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
