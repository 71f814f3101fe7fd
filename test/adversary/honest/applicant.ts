// An applicant without an account, served by an intake application: creates a draft, gets a code by mail, reads the
// draft with the code, saves several times, reads each save back, and submits.
import { isDeepStrictEqual } from 'node:util';
import { definitionId } from '../world/preparation.ts';
import { live, type Surroundings, think } from './persona.ts';
import { mustSee } from './recorder.ts';
import { createSender, type ReceivedResponse } from './requests.ts';

const codePattern = /^\s*([A-Z0-9]{6,})\s*$/m;

export async function liveAsApplicant(around: Surroundings, index: number): Promise<void> {
  const { addresses } = around.world;
  const { send, close } = createSender({
    authorization: `Bearer ${addresses.tokens.intake}`,
    'x-forwarded-for': `10.1.0.${index}`,
  });
  const base = `${addresses.fronts.forms}/form/v1/forms`;
  await live(around, () => applyOnce({ around, send, base, address: `${around.random.word(12)}@example.org` }));
  close();
}

interface Application {
  around: Surroundings;
  send: ReturnType<typeof createSender>['send'];
  base: string;
  address: string;
}

async function applyOnce(application: Application): Promise<void> {
  const { around, send, base, address } = application;
  const { recorder, ledger, random } = around;
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address }] };
  const created = await recorder.measure('create', () =>
    send(base, { method: 'POST', body: { definitionId, applicant }, expect: 201 }),
  );
  const { id } = created.json as { id: string };
  ledger.created(id);
  await think(around);
  await recorder.measure('send code', () =>
    send(`${base}/${id}`, { method: 'POST', body: { operation: 'send-code' }, expect: 202 }),
  );
  const code = await recorder.measure('code mail', () => readCode(application));
  let data: unknown = {};
  let etag = etagOf(await readBack(application, { id, code, data }));
  for (let saves = 0; saves < 4 && !around.signal.aborted; saves += 1) {
    await think(around);
    data = { name: 'a canary', age: random.integer(0, 99), note: random.word(random.integer(10, 2_000)) };
    ledger.attempt(id, data);
    const saved = await recorder.measure('save', () =>
      send(`${base}/${id}/data`, { method: 'PUT', headers: { 'if-match': etag }, body: { data, files: {} } }),
    );
    ledger.acknowledged(id, data);
    etag = etagOf(saved);
    await think(around);
    await readBack(application, { id, code, data });
  }
  if (around.signal.aborted) return;
  await recorder.measure('submit', async () => {
    const { json } = await send(`${base}/${id}`, { method: 'POST', body: { operation: 'submit' } });
    mustSee((json as { status?: string }).status === 'Submitted', 'a submitted form has another status');
  });
}

async function readCode({ around, address }: Application): Promise<string> {
  const isCode = ({ to, text }: { to: string; text: string }) => to === address && codePattern.test(text);
  const mail = await around.world.mailbox.waitFor(isCode, 15_000).catch(() => undefined);
  if (!mail) throw new Error('the mail with the code did not arrive within 15 s');
  return codePattern.exec(mail.text)?.[1] ?? '';
}

interface Expected {
  id: string;
  code: string;
  data: unknown;
}

/** Reads the form data, and complains if it differs from the last save. */
function readBack({ around, send, base }: Application, { id, code, data }: Expected): Promise<ReceivedResponse> {
  return around.recorder.measure('read', async () => {
    const response = await send(`${base}/${id}/data`, { headers: { 'x-form-code': code } });
    const { data: found } = response.json as { data?: unknown };
    mustSee(isDeepStrictEqual(found, data), 'an applicant read other data than was saved');
    return response;
  });
}

function etagOf({ headers }: ReceivedResponse): string {
  return String(headers.etag ?? '');
}
