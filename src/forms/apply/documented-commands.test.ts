// Tests the commands that /docs shows for the calls of the intake application: a person can paste them into a shell.
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { startTestApply, type TestApply } from '../../../test/support/apply.ts';
import { type DocumentedCommands, documentedCommands } from '../../../test/support/documented-commands.ts';

const api = '/apply/api/tenants/{tenant}';
const form = `${api}/forms/{formId}`;
const uploaded: string[] = [];
const fileService = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  uploaded.push(Buffer.concat(parts).toString());
  response.writeHead(200).end(JSON.stringify({ id: '3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551' }));
});
let apply: TestApply;
let commands: DocumentedCommands;
const called = new Set<string>();

beforeAll(async () => {
  const port = await listenOnLowPort(fileService);
  apply = await startTestApply({
    env: () => ({ DIR_PLATFORM_FILE_SERVICE_V1: `http://127.0.0.1:${port}/file/v1` }),
  });
  // The data of the documented save is complete for this definition.
  const dataSchema = {
    type: 'object',
    required: ['businessName'],
    properties: { businessName: { type: 'string' } },
  };
  await apply.forms.define({ id: 'business', name: 'Business', anonymousApply: true, dataSchema });
  commands = await documentedCommands(apply.forms.url);
});
afterAll(async () => {
  commands.close();
  await apply.close();
  fileService.close();
});

function run(call: string, formId = '', edit?: (command: string) => string) {
  called.add(call);
  return commands.run(call, { TENANT: 'demo', DEFINITION: 'business', FORM_ID: formId }, edit);
}

async function start(): Promise<string> {
  const { status, body } = await run(`POST ${api}/definitions/{definition}/forms`);
  expect({ status, body }).toMatchObject({ status: 201, body: { id: expect.any(String) } });
  return String(body.id);
}

async function submitForm(): Promise<void> {
  const id = await start();
  expect(await run(`PUT ${form}/data`, id)).toMatchObject({ status: 200 });
  commands.write('file', 'content\nof a file');
  expect(await run(`POST ${form}/files`, id)).toMatchObject({ status: 201, body: { size: 17 } });
  expect(uploaded.at(-1)).toContain('content\nof a file');
  expect(await run(`POST ${form}/submission`, id)).toMatchObject({ status: 200, body: { status: 'Submitted' } });
  expect(await run(`GET ${form}`, id)).toMatchObject({ status: 200, body: { status: 'Submitted' } });
  expect(await run(`DELETE ${form}/cookie`, id)).toMatchObject({ status: 204 });
  expect(await run(`GET ${form}`, id)).toMatchObject({ status: 401 });
}

async function deleteDraft(): Promise<void> {
  // As another browser: the same browser would get the first form again, because the idempotency key is the same.
  commands.write('cookies', '');
  const id = await start();
  const { mailbox } = apply.forms.platform;
  expect(await run(`POST ${form}/codes`, id)).toMatchObject({ status: 202 });
  const mail = await mailbox.waitFor(({ subject }) => subject === 'Your code');
  const [, code = ''] = /^\s*([A-Z0-9]{6,})\s*$/m.exec(mail.text) ?? [];
  const invalidCode = { status: 403, body: { type: 'urn:formgate:problem:invalid-code' } };
  expect(await run(`POST ${form}/code-checks`, id)).toMatchObject(invalidCode);
  const withCode = (command: string) => command.replace('K2TPX4', code);
  expect(await run(`POST ${form}/code-checks`, id, withCode)).toMatchObject({ status: 204 });
  expect(await run(`GET ${form}/data`, id)).toMatchObject({ status: 200 });
  expect(await run(`DELETE ${form}`, id)).toMatchObject({ status: 204 });
}

it('a form is submitted, and a draft deleted, with the commands of /docs', async () => {
  await submitForm();
  await deleteDraft();
  const changing = commands.calls.filter((call) => call.includes('/apply/api/') && !call.startsWith('GET'));
  expect(changing.filter((call) => !called.has(call))).toEqual([]);
});
