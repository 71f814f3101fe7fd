// Tests who may send bodies and form data that are expensive to read or validate, and how other callers are refused.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';

let forms: TestForms;
let draftId: string;

beforeAll(async () => {
  forms = await startTestForms();
  draftId = await forms.draft();
});
afterAll(() => forms.close());

const megabyte = 1_000_000;
/** Sends only the header section of a request, and never its body. Returns the status of the response. */
async function headOnly(method: string, path: string, as: Who): Promise<number> {
  const { port, host } = new URL(forms.url);
  const head = [
    `${method} /form/v1/forms${path} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${forms.token(as)}`,
    'Content-Type: application/json',
    `Content-Length: ${megabyte}`,
  ];
  return (await sendRaw(Number(port), `${head.join('\r\n')}\r\n\r\n`)).status;
}

const wrongItems = (count: number) => ({ list: Array.from({ length: count }, () => '') });

describe('a body of a megabyte', () => {
  it.each(['', '?validate=true'])(
    'from a caller without access to the form is refused before it is sent (%s)',
    async (query) => {
      expect(await headOnly('PUT', `/${draftId}/data${query}`, 'nobody')).toBe(403);
      expect(await headOnly('PUT', `/${draftId}/data${query}`, 'alice')).toBe(403);
      expect(await headOnly('PUT', `/0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11/data${query}`, 'nobody')).toBe(404);
      expect(await headOnly('PUT', `/x/data${query}`, 'nobody')).toBe(400);
    },
  );

  it('to operate on a form is 413 before it is sent: these bodies are small', async () => {
    for (const who of ['nobody', 'intake'] as const) expect(await headOnly('POST', `/${draftId}`, who)).toBe(413);
  });

  it('with 100,000 invalid files is refused with the first hundred problems', async () => {
    const files = Object.fromEntries(Array.from({ length: 80_000 }, (_, nth) => [nth.toString(36), 1]));
    const answered = await forms.ask('PUT', `/${draftId}/data`, { as: 'intake', body: { data: {}, files } });
    expect(answered).toMatchObject({ status: 400, body: { errors: { length: 100 } } });
    const { errors } = answered.body as { errors: object[] };
    expect(errors[0]).toEqual({ pointer: '/files/0', detail: 'must be a string' });
  });
});

it('a save with more than 200,000 JSON values is refused with the reason', async () => {
  const body = { data: { list: Array(200_000).fill(0) }, files: {} };
  const answered = await forms.ask('PUT', `/${draftId}/data`, { as: 'intake', body });
  expect(answered).toMatchObject({
    status: 400,
    body: { errors: [{ pointer: '', detail: 'has more than 200000 JSON values' }] },
  });
});

describe('form data with many invalid fields', () => {
  const id = 'many';
  const dataSchema = { properties: { list: { items: { type: 'number', enum: [1], not: { const: '' } } } } };

  it.each([100, 190_000])('is 400 at submit with at most 20 errors, and truncated: %i items', async (count) => {
    await forms.define({ ...permit, id, dataSchema });
    const formId = await forms.draft({ definitionId: id });
    const saved = await forms.ask('PUT', `/${formId}/data?validate=true`, {
      as: 'intake',
      body: { data: wrongItems(count), files: {} },
    });
    expect(saved).toMatchObject({ status: 200, body: { truncated: true } });
    const answered = await forms.ask('POST', `/${formId}`, { as: 'intake', body: { operation: 'submit' } });
    expect(answered).toMatchObject({ status: 400, body: { truncated: true } });
    const { errors } = answered.body as { errors: { pointer: string }[] };
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.length).toBeLessThanOrEqual(20);
    expect(errors[0]?.pointer).toBe('/data/list/0');
  });

  it('is judged like any other if the pattern is hostile', async () => {
    await forms.define({ ...permit, id: 'evil', dataSchema: { properties: { a: { pattern: '^(a+)+$' } } } });
    const formId = await forms.draft({ definitionId: 'evil' });
    const submit = () => forms.ask('POST', `/${formId}`, { as: 'intake', body: { operation: 'submit' } });
    const save = (a: string) => forms.ask('PUT', `/${formId}/data`, { as: 'intake', body: { data: { a }, files: {} } });
    await save(`${'a'.repeat(30)}!`);
    expect(await submit()).toMatchObject({ status: 400, body: { errors: [{ pointer: '/data/a' }] } });
    await save('a'.repeat(30));
    expect(await submit()).toMatchObject({ status: 200 });
  });
});
