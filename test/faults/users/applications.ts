// An intake application that repeats each request until it succeeds. It creates drafts with an idempotency key, saves
// with If-Match, reads the data back, and submits or deletes. It records what the stores must contain.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../../adversary/random.ts';
import { definitionId } from '../../adversary/world/preparation.ts';
import { insist, type Outcome } from './persistence.ts';

export interface Application {
  address: string;
  formId: string | undefined;
  /** The form data that the form may contain: one value, or two while a save has an unknown outcome. */
  possible: unknown[];
  /** What has certainly happened: `created`, then perhaps `submitted`, then perhaps `deleted`. */
  done: ('created' | 'submitted' | 'deleted')[];
  /** A step that was begun, and whose outcome is unknown because the run ended. */
  begun: 'created' | 'submitted' | 'deleted' | undefined;
}

export interface Applicant {
  formsUrl: string;
  /** Tokens of an intake application and of an administrator. */
  intake: string;
  administrator: string;
  random: Random;
  signal: AbortSignal;
  applications: Application[];
  complain(what: string): void;
}

/** Makes one application after another until the signal is aborted. */
export async function keepApplying(applicant: Applicant): Promise<void> {
  while (!applicant.signal.aborted)
    await applyOnce(applicant).catch((error: Error) => applicant.complain(`an applicant: ${error.message}`));
}

async function applyOnce({ formsUrl, intake, administrator, random, signal, ...rest }: Applicant): Promise<void> {
  const application: Application = {
    ...{ address: `${randomUUID()}@example.org`, formId: undefined, possible: [{}] },
    ...{ done: [], begun: undefined },
  };
  rest.applications.push(application);
  const base = `${formsUrl}/form/v1/forms`;
  const as = (token: string, more = {}) => ({ authorization: `Bearer ${token}`, ...more });
  const step = async (what: Application['begun'] & string, asking: () => Promise<Outcome | undefined>) => {
    application.begun = what;
    const outcome = await asking();
    if (!outcome) return undefined;
    application.begun = undefined;
    application.done.push(what);
    return outcome;
  };

  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address: application.address }] };
  const body = { definitionId, applicant };
  const once = () => as(intake, { 'idempotency-key': randomUUID() });
  const create = { method: 'POST', url: base, headers: once(), body };
  const created = await step('created', () => insist(create, [201], signal));
  if (!created) return;
  const { id } = created.json as { id: string };
  application.formId = id;
  const read = () => insist({ method: 'GET', url: `${base}/${id}/data`, headers: as(administrator) }, [200], signal);

  for (let saves = random.integer(1, 4); saves > 0; saves -= 1) {
    const before = await read();
    if (!before) return;
    const { data: found } = before.json as { data: unknown };
    if (!application.possible.some((one) => isDeepStrictEqual(one, found)))
      return rest.complain(`a draft contains ${JSON.stringify(found)}, but nobody saved that last`);
    const data = { name: 'a canary', age: random.integer(0, 99), note: randomUUID() };
    application.possible = [found, data];
    const headers = as(intake, { 'if-match': String(before.headers.etag) });
    const save = { method: 'PUT', url: `${base}/${id}/data`, headers, body: { data, files: {} } };
    // 412: an earlier attempt was saved, although its response was lost.
    const saved = await insist(save, [200, 412], signal);
    if (!saved) return;
    application.possible = [data];
  }
  const choice = random.fraction();
  if (choice < 0.6) {
    const submit = { method: 'POST', url: `${base}/${id}`, headers: once(), body: { operation: 'submit' } };
    if (!(await step('submitted', () => insist(submit, [200], signal)))) return;
  }
  if (choice < 0.8 && choice > 0.4) {
    const remove = { method: 'DELETE', url: `${base}/${id}`, headers: as(administrator) };
    await step('deleted', () => insist(remove, [204], signal));
  }
}
