// Tests the OpenAPI documents of all processes: the names of operations, and the statuses that follow from their
// guards. Also generates a client from the documents with a common generator; the client must compile.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { generate } from 'openapi-typescript-codegen';
import { afterAll, describe, expect, it } from 'vitest';
import { createOpenApi } from '../../src/service/openapi/openapi.ts';
import { routedProcesses } from './route-tables.ts';

interface Operation {
  operationId: string;
  summary: string;
  security?: object[];
  parameters?: { name: string; in: string; description?: string; required?: boolean }[];
  requestBody?: { content: object };
  responses: Record<string, { description: string; headers?: object }>;
}

/** Routes that the documents leave out: pages, the documents themselves, and the token handler's paths without `v1`. */
const left = /^\/(?:apply(?!\/api)|console|docs|openapi|swagger|problems|token-handler\/(?!v1))/;
const documents = routedProcesses.map(({ title, routes }) => {
  const documented = routes.filter(({ path }) => !left.test(path));
  const document = createOpenApi({ title, version: '1', description: title, routes: documented });
  const operations = Object.values(document.paths ?? {}).flatMap((item) => Object.values(item) as Operation[]);
  return { title, document, operations };
});

const folder = mkdtempSync(join(tmpdir(), 'formgate-clients-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(documents)('the OpenAPI document of: $title', ({ document, operations }) => {
  it('names each operation once, with a name that a function may have', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]*$/.test(id))).toEqual([]);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  it('describes each operation, its responses and its headers, and lists a success', () => {
    for (const { operationId, summary, parameters = [], responses } of operations) {
      expect(summary, operationId).toMatch(/\w/);
      expect(
        Object.keys(responses).some((status) => /^[123]/.test(status)),
        operationId,
      ).toBe(true);
      const headers = parameters.filter((one) => one.in === 'header');
      for (const { description } of [...Object.values(responses), ...headers])
        expect(description, operationId).toMatch(/\w/);
    }
  });

  it('lists the failures of services behind each operation with a token', () => {
    const unlisted = operations.filter(
      ({ security = [], responses }) =>
        security.some((requirement) => 'bearer' in requirement) &&
        ![502, 503, 504].every((status) => status in responses),
    );
    expect(unlisted.map(({ operationId }) => operationId)).toEqual([]);
  });

  it('names its server', () => {
    expect(document.servers).toEqual([{ url: '/' }]);
  });
});

const limited = ['checkDefinition', 'listRegisterEntries', 'signIn', 'receiveSignIn', 'backchannelLogout', 'proxyPost'];

it('each operation with a rate limit lists 429', () => {
  const operations = documents.flatMap((one) => one.operations);
  const found = limited.map((id) => operations.find(({ operationId }) => operationId === id));
  expect(found.map((one) => [one?.operationId, one && 429 in one.responses])).toEqual(limited.map((id) => [id, true]));
});

it('lists the failures of operations that reject embedded content, or read the body themselves', () => {
  const operations = documents.flatMap((one) => one.operations);
  const statusesOf = (id: string) =>
    Object.keys(operations.find(({ operationId }) => operationId === id)?.responses ?? {});
  for (const id of ['signIn', 'receiveSignIn', 'signOut', 'listSessions']) expect(statusesOf(id), id).toContain('403');
  for (const id of ['backchannelLogout', 'createApplyApiTenantFormFile'])
    expect(statusesOf(id), id).toEqual(expect.arrayContaining(['408', '413', '415']));
  const refusal = operations.find(({ operationId }) => operationId === 'backchannelLogout')?.responses[400];
  expect(refusal).toMatchObject({
    content: { 'application/json': { schema: { required: ['error', 'error_description'] } } },
  });
});

/** Returns the request headers of the operations that `isChosen` accepts. Required ones end with `!`. */
function headersOf(isChosen: (operation: Operation) => boolean): Record<string, string[]> {
  const chosen = documents.flatMap(({ operations }) => operations.filter(isChosen));
  return Object.fromEntries(
    chosen.map(({ operationId, parameters = [] }) => [
      operationId,
      parameters.flatMap((one) => (one.in === 'header' ? `${one.name}${one.required ? '!' : ''}` : [])),
    ]),
  );
}

it('an operation that changes something with a session cookie requires X-XSRF-TOKEN, unless it also takes a token', () => {
  const headers = headersOf(({ security = [] }) => security.some((requirement) => 'session' in requirement));
  const methods = ['Post', 'Put', 'Patch', 'Delete', 'Head', 'Options'];
  expect(headers).toEqual({
    ...{ listSessions: [], deleteSession: ['X-XSRF-TOKEN'], proxyGet: [] },
    ...Object.fromEntries(methods.map((method) => [`proxy${method}`, ['X-XSRF-TOKEN!']])),
  });
});

it('the operations of the intake application that change something list the headers that they require', () => {
  const headers = headersOf(({ operationId }) => /^(?!get|list).*ApplyApi/.test(operationId));
  expect(headers).toEqual({
    createApplyApiTenantDefinitionForm: ['X-Formgate-Apply!', 'Idempotency-Key!'],
    deleteApplyApiTenantForm: ['X-Formgate-Apply!'],
    deleteApplyApiTenantFormCookie: ['X-Formgate-Apply!'],
    createApplyApiTenantFormCode: ['X-Formgate-Apply!'],
    createApplyApiTenantFormCodeCheck: ['X-Formgate-Apply!'],
    setApplyApiTenantFormData: ['X-Formgate-Apply!', 'If-Match!', 'Save-Id'],
    postApplyApiTenantFormSubmission: ['X-Formgate-Apply!', 'Idempotency-Key!', 'If-Match'],
    createApplyApiTenantFormFile: ['X-Formgate-Apply!'],
  });
});

it('an operation whose handler reads the body itself documents it', () => {
  const operations = documents.flatMap((one) => one.operations);
  const bodyOf = (id: string) => operations.find(({ operationId }) => operationId === id)?.requestBody?.content;
  expect(bodyOf('createApplyApiTenantFormFile')).toMatchObject({
    'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
  });
  expect(bodyOf('backchannelLogout')).toMatchObject({
    'application/x-www-form-urlencoded': { schema: { required: ['logout_token'] } },
  });
});

it('a generated client compiles, and knows what is required', async () => {
  for (const [index, { document }] of documents.entries())
    await generate({
      input: structuredClone(document),
      output: join(folder, String(index)),
      useOptions: true,
      useUnionTypes: true,
    });
  copyFileSync(join(import.meta.dirname, '../fixtures/generated-client/use.ts'), join(folder, 'use.ts'));
  const compilerOptions = {
    ...{ strict: true, noEmit: true, allowImportingTsExtensions: true, module: 'esnext', moduleResolution: 'bundler' },
    ...{ target: 'es2024', lib: ['es2024', 'dom', 'dom.iterable'], types: [] },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['use.ts'] }));
  const compiler = join(import.meta.dirname, '../../node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(compiler, ['--project', folder]).catch((error) => error);
  expect(stdout).toBe('');
});
