// Tests, over HTTP, names in form data that Node 26 may parse incorrectly after certain other names
// (nodejs/node#63785). Such data must be rejected, or stored exactly as it was sent.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { parseJson } from '../../service/json-parser.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

async function put(id: string, body: string) {
  const response = await fetch(`${forms.url}/form/v1/forms/${id}/data`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${forms.token('intake')}`, 'Content-Type': 'application/json' },
    body,
  });
  return { status: response.status, problem: (await response.json()) as { errors?: { pointer: string }[] } };
}

const file = '"urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553"';

describe('a draft', () => {
  it('rejects a NUL in a name of its data or files, after any other save, and can be deleted', async () => {
    const id = await forms.draft();
    expect((await put(id, `{"data":{"q":1,"\\\\":2},"files":{"q":${file},"\\\\":${file}}}`)).status).toBe(200);
    const inData = await put(id, '{"data":{"q":1,"\\u0000":2},"files":{}}');
    expect([inData.status, inData.problem.errors?.[0]?.pointer]).toEqual([400, '/data/\0']);
    const inFiles = await put(id, `{"data":{},"files":{"q":${file},"\\u0000":${file}}}`);
    expect([inFiles.status, inFiles.problem.errors?.[0]?.pointer]).toEqual([400, '/files/\0']);
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  });

  it('is listed and validated with the saved names, after any other save', async () => {
    await forms.define({
      ...{ id: 'quoted', name: 'Quoted', anonymousApply: true, applicantRoles: [], clerkRoles: [], assessorRoles: [] },
      dataSchema: { type: 'object', properties: { h: {}, '"': { type: 'string' } }, additionalProperties: false },
    });
    const other = await forms.draft({ definitionId: 'quoted' });
    const id = await forms.draft({ definitionId: 'quoted' });
    // The service, the validation worker and the database client each parse this form data.
    expect((await put(other, '{"data":{"h":1,"\\\\":2},"files":{}}')).status).toBe(200);
    expect((await forms.ask('POST', `/${other}`, { as: 'intake', body: { operation: 'submit' } })).status).toBe(400);
    expect((await put(id, '{"data":{"h":1,"\\"":"text"},"files":{}}')).status).toBe(200);
    const criteria = encodeURIComponent('{"definitionIdEquals":"quoted"}');
    const list = await fetch(`${forms.url}/form/v1/forms?includeData=true&criteria=${criteria}`, {
      headers: { Authorization: `Bearer ${forms.token('admin')}` },
    });
    const { results } = parseJson(await list.text()) as { results: { data: object }[] };
    expect(results.map(({ data }) => Object.keys(data))).toEqual([
      ['h', '"'],
      ['h', '\\'],
    ]);
    expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' } })).status).toBe(200);
  });
});
