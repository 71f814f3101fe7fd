// Tests that uploads are limited for each form, client address and tenant, that slow uploads do not keep other
// applicants from uploading, and that a deletion finds all uploaded files. The file service is scripted.
import { randomUUID } from 'node:crypto';
import { type ClientRequest, createServer, request } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import {
  type ApplicantBrowser,
  type PageResponse,
  startTestApply,
  type TestApply,
} from '../../../test/support/apply.ts';
import { configure, permit } from '../../../test/support/forms.ts';

/** The status of the file service's next responses, and what it does before it responds to an upload. */
let fileStatus = 200;
let beforeAnswer = async (): Promise<void> => undefined;
const fileService = createServer((incoming, response) => {
  incoming.resume().once('end', async () => {
    // Files of other forms may be removed at the same time.
    if (incoming.method === 'POST') await beforeAnswer();
    response.writeHead(fileStatus).end(JSON.stringify({ id: randomUUID() }));
  });
});
const unfinished: ClientRequest[] = [];
let apply: TestApply;

beforeAll(async () => {
  const port = await listenOnLowPort(fileService);
  apply = await startTestApply({
    env: () => ({
      DIR_PLATFORM_FILE_SERVICE_V1: `http://127.0.0.1:${port}/file/v1`,
      DELETE_FILES: 'true',
      APPLY_FILE_LIMIT: '1024',
      APPLY_FILES_PER_FORM: '3',
      APPLY_FILE_BYTES_PER_FORM: '1100',
      APPLY_DRAFTS_PER_ADDRESS: '100',
      APPLY_UPLOAD_LIMIT: '6',
      APPLY_UPLOAD_BYTES_PER_ADDRESS: '8192',
      APPLY_UPLOAD_BYTES_PER_TENANT: '24576',
      // A tenant has 2 KiB of them in reserve.
      APPLY_UPLOAD_BYTES_TOTAL: '102400',
    }),
  });
});
/** Moves the clock to the beginning of an hour. Files and bytes are counted in clock hours and parts of them. */
function beginHour(): void {
  const hour = 3_600_000;
  apply.forms.advance(hour - (apply.forms.now().getTime() % hour));
}
beforeEach(beginHour);
afterEach(() => {
  fileStatus = 200;
  beforeAnswer = async () => undefined;
  for (const upload of unfinished.splice(0)) upload.destroy();
});
afterAll(async () => {
  await apply.close();
  fileService.close();
});

/** Starts an upload that sends one byte of its file and then nothing. */
function startSlowUpload({ jar }: ApplicantBrowser, formId: string, address: string): void {
  const upload = request(`${apply.forms.url}/apply/api/tenants/demo/forms/${formId}/files?name=slow.pdf`, {
    method: 'POST',
    headers: {
      'x-formgate-apply': '1',
      'x-forwarded-for': address,
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
      'content-type': 'application/octet-stream',
      'content-length': '1000',
    },
  });
  upload.on('error', () => undefined);
  upload.write('x');
  unfinished.push(upload);
}

let addresses = 0;
/** Returns a client address that no other call has returned. */
function newAddress(): string {
  addresses += 1;
  return `198.51.100.${addresses}`;
}

const upload = (page: ApplicantBrowser, id: string, body = 'content', address = newAddress()) =>
  page.ask('POST', `/forms/${id}/files?name=plan.pdf`, {
    body,
    headers: { 'content-type': 'application/octet-stream', 'x-forwarded-for': address },
  });

/** Deletes a form as an administrator does. Returns the files of its outbox rows, keyed by the kind of the row. */
async function remove(id: string): Promise<Record<string, string[]>> {
  expect((await apply.forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  return filesOf(id);
}

async function filesOf(id: string): Promise<Record<string, string[]>> {
  const sql = "SELECT kind, facts -> 'files' AS files FROM outbox WHERE form_id = $1 AND facts ? 'files'";
  const { rows } = await apply.forms.pool.query<{ kind: string; files: string[] }>(sql, [id]);
  return Object.fromEntries(rows.map(({ kind, files }) => [kind, files.toSorted()]));
}

const tooMany = { status: 409, body: { type: 'urn:formgate:problem:too-many-files' } };

it('a form takes a limited number of files, counting those that it no longer names', async () => {
  const page = apply.browser();
  const { id } = await page.start();
  const uploads = await Promise.all([1, 2, 3, 4, 5].map(() => upload(page, id)));
  expect(uploads.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409, 409]);
  expect(await upload(page, id)).toMatchObject(tooMany);
  expect((await upload(page, (await page.start()).id)).status).toBe(201);
});

it('a form takes files of a limited total size', async () => {
  const page = apply.browser();
  const { id } = await page.start();
  expect((await upload(page, id, 'x'.repeat(1_000))).status).toBe(201);
  expect(await upload(page, id, 'x'.repeat(101))).toMatchObject(tooMany);
  expect((await upload(page, id, 'x'.repeat(100))).status).toBe(201);
});

it.each([
  ['does not count if the file service refuses the file', 415, 400, 201],
  ['counts if the file service may have stored the file', 500, 502, 409],
])('an upload %s', async (_what, status, refused, next) => {
  const page = apply.browser();
  const { id } = await page.start();
  fileStatus = status;
  for (let nth = 0; nth < 3; nth += 1) expect((await upload(page, id)).status).toBe(refused);
  const message = 'uploaded file perhaps not recorded';
  const isLogged = apply.forms.log
    .text()
    .split('\n')
    .some((line) => line.includes(message) && line.includes(id));
  expect(isLogged).toBe(status === 500);
  fileStatus = 200;
  expect((await upload(page, id)).status).toBe(next);
});

it('a client address can upload a limited number of files in ten minutes, to all of its forms together', async () => {
  const page = apply.browser();
  const address = newAddress();
  const statuses: number[] = [];
  for (let nth = 0; nth < 7; nth += 1)
    statuses.push((await upload(page, (await page.start()).id, 'content', address)).status);
  expect(statuses).toEqual([201, 201, 201, 201, 201, 201, 429]);
});

it('the deletion of a form finds the files that it names and those that were uploaded but never saved', async () => {
  const page = apply.browser();
  const { id, etag } = await page.start();
  const urns = [(await upload(page, id)).body.urn, (await upload(page, id)).body.urn].map(String);
  const other = `urn:example:platform:file-service:v1:/files/${randomUUID()}`;
  const saved = await page.ask('PUT', `/forms/${id}/data`, {
    body: { data: {}, files: { 'plan.pdf': urns[0], 'other.pdf': other } },
    headers: { 'if-match': etag },
  });
  expect(saved.status).toBe(200);
  expect(await remove(id)).toMatchObject({ 'form-deleted': [...urns, other].sort() });
});

it('a file is found by the deletion even if the database was busy when it had been uploaded', async () => {
  const page = apply.browser();
  const { id } = await page.start();
  const lock = await apply.forms.pool.connect();
  beforeAnswer = async () => {
    beforeAnswer = async () => undefined;
    await lock.query('BEGIN');
    await lock.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [id]);
    // Longer than a statement of the service waits for the lock of a row.
    setTimeout(() => void lock.query('COMMIT'), 2_000);
  };
  const { status, body } = await upload(page, id);
  lock.release();
  expect(status).toBe(201);
  expect(await remove(id)).toMatchObject({ 'form-deleted': [body.urn] });
});

it('uploads that could not be counted use up no bytes of the client address', async () => {
  const page = apply.browser();
  const address = newAddress();
  const ids: string[] = [];
  for (let nth = 0; nth < 6; nth += 1) ids.push((await page.start()).id);
  const lock = await apply.forms.pool.connect();
  await lock.query('BEGIN');
  await lock.query('SELECT FROM forms WHERE id = ANY ($1) FOR UPDATE', [ids]);
  for (const id of ids) expect((await upload(page, id, 'content', address)).status).toBe(503);
  await lock.query('COMMIT');
  lock.release();
  apply.forms.advance(10 * 60_000);
  const statuses: number[] = [];
  for (const id of ids) statuses.push((await upload(page, id, 'content', address)).status);
  expect(statuses).toEqual([201, 201, 201, 201, 201, 201]);
});

it('a file whose form is deleted during the upload is deleted too', async () => {
  const page = apply.browser();
  const { id } = await page.start();
  beforeAnswer = async () => {
    beforeAnswer = async () => undefined;
    await remove(id);
  };
  expect(await upload(page, id)).toMatchObject({ status: 410, body: { type: 'urn:formgate:problem:gone' } });
  expect(await filesOf(id)).toMatchObject({
    'form-deleted': [],
    'remove-files': [expect.stringMatching(/^urn:example:platform:file-service:v1:\/files\/[0-9a-f-]{36}$/)],
  });
});

it.each([
  ['a person elsewhere has', () => '203.0.113.1'],
  ['three client addresses have', (draft: number) => `203.0.113.${10 + draft}`],
])('an applicant can upload a file while %s many slow uploads of several drafts', async (_who, address) => {
  const slow = apply.browser();
  for (let draft = 0; draft < 3; draft += 1) {
    const { id } = await slow.start();
    for (let upload = 0; upload < 2; upload += 1) startSlowUpload(slow, id, address(draft));
  }
  const page = apply.browser();
  const { id } = await page.start();
  // This request is sent after the slow uploads. When its response arrives, each upload has called the form service.
  await page.ask('GET', `/forms/${id}`);
  expect(await upload(page, id, 'content', '203.0.113.2')).toMatchObject({
    status: 201,
    body: { name: 'plan.pdf', size: 7 },
  });
});

it('the bytes of stored files are limited by client address and by tenant, and the limits end with their hour', async () => {
  const page = apply.browser();
  const uploadTimes = async (count: number, address?: string) => {
    const answers: PageResponse[] = [];
    for (let nth = 0; nth < count; nth += 1)
      answers.push(await upload(page, (await page.start()).id, 'content', address));
    return answers;
  };
  const statuses = (answers: PageResponse[]) => answers.map(({ status }) => status);
  const [hostile, unlucky] = [newAddress(), newAddress()];
  fileStatus = 415;
  expect(statuses(await uploadTimes(6, unlucky))).toEqual([400, 400, 400, 400, 400, 400]);
  fileStatus = 200;
  // Each file counts as 1 KiB. The limit of files ends after ten minutes.
  expect(statuses(await uploadTimes(6, hostile))).toEqual([201, 201, 201, 201, 201, 201]);
  apply.forms.advance(10 * 60_000);
  const [, , refused] = await uploadTimes(3, hostile);
  expect(refused).toMatchObject({ status: 429, body: { type: 'urn:formgate:problem:too-many-requests' } });
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(600);
  expect(statuses(await uploadTimes(6, unlucky))).toEqual([201, 201, 201, 201, 201, 201]);
  // 14 KiB of 24 KiB are used.
  expect(statuses(await uploadTimes(11))).toEqual([...Array(10).fill(201), 503]);
  beginHour();
  expect(statuses(await uploadTimes(1, hostile))).toEqual([201]);
});

it('the bytes of stored files are limited in total, but a tenant has a fiftieth of the total in any case', async () => {
  const { platform, pool } = apply.forms;
  await configure({ ...platform, tenant: platform.otherTenant }, 'platform', 'form-service', { permit });
  const pages = { demo: apply.browser('demo'), other: apply.browser('other') };
  const uploadAt = async (realm: keyof typeof pages) =>
    (await upload(pages[realm], (await pages[realm].start()).id)).status;
  for (let nth = 0; nth < 3; nth += 1) expect(await uploadAt('demo')).toBe(201);
  const sql = `UPDATE apply_counts SET used = 100 WHERE name = 'apply-upload-bytes-total' AND used = 1
    AND window_start = (SELECT max(window_start) FROM apply_counts)`;
  expect((await pool.query(sql)).rowCount).toBe(1);
  expect(await uploadAt('demo')).toBe(503);
  expect([await uploadAt('other'), await uploadAt('other'), await uploadAt('other')]).toEqual([201, 201, 503]);
});
