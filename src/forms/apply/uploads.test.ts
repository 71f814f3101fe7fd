// Tests that slow uploads do not keep other applicants from uploading. The file service is scripted.
import { type ClientRequest, createServer, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { type ApplicantBrowser, startTestApply, type TestApply } from '../../../test/support/apply.ts';

const fileId = '3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';
const fileService = createServer((incoming, response) => {
  incoming.resume().once('end', () => response.writeHead(200).end(JSON.stringify({ id: fileId })));
});
const unfinished: ClientRequest[] = [];
let apply: TestApply;

beforeAll(async () => {
  const port = await listenOnLowPort(fileService);
  apply = await startTestApply({ env: () => ({ DIR_PLATFORM_FILE_SERVICE_V1: `http://127.0.0.1:${port}/file/v1` }) });
});
afterAll(async () => {
  for (const upload of unfinished) upload.destroy();
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

it('an applicant can upload a file while a person elsewhere has many slow uploads of several drafts', async () => {
  const slow = apply.browser();
  for (let draft = 0; draft < 3; draft += 1) {
    const { id } = await slow.start();
    for (let upload = 0; upload < 2; upload += 1) startSlowUpload(slow, id, '203.0.113.1');
  }
  const page = apply.browser();
  const { id } = await page.start();
  // This request follows the slow uploads, so each of them has called the form service when its response arrives.
  await page.ask('GET', `/forms/${id}`);
  const upload = await page.ask('POST', `/forms/${id}/files?name=plan.pdf`, {
    body: 'content',
    headers: { 'content-type': 'application/octet-stream', 'x-forwarded-for': '203.0.113.2' },
  });
  expect(upload).toMatchObject({ status: 201, body: { name: 'plan.pdf', size: 7 } });
});
