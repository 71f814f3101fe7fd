// Tests that a curl command is safe to paste into a shell, even if the data is hostile.
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { curlOf } from '../../web/console/api/curl.ts';
import { type ApiRequest, addressOf, path } from '../../web/console/api/request.ts';
import { putRequest, removeRequest } from '../../web/console/registers/register.ts';

const hostile = `it's "$HOME" \`id\` $(id) \\ ; id\n#`;

it('a command has the token as a variable, and data reaches curl unchanged', () => {
  const request: ApiRequest = {
    target: 'form-service',
    path: path`/form/v1/registers/${hostile}/entries`,
    method: 'POST',
    query: { keyField: hostile, dryRun: true, left: undefined },
    headers: { 'X-Applicant-Address': hostile },
    csv: hostile,
  };
  const command = curlOf(request).replace(/^curl/, 'printf "%s\\0"');
  const words = execFileSync('/bin/sh', ['-c', command], {
    env: { FORMGATE_URL: 'http://forms', TOKEN: 'secret' },
    encoding: 'utf8',
  }).split('\0');
  expect(words).toEqual([
    '-X',
    'POST',
    `http://forms${addressOf(request)}`,
    '-H',
    'Authorization: Bearer secret',
    '-H',
    `X-Applicant-Address: ${hostile}`,
    '-H',
    'Content-Type: text/csv',
    '--data-binary',
    hostile,
    '',
  ]);
  expect(curlOf(request)).toContain('-H "Authorization: Bearer $TOKEN"');
});

it('parts of a path that come from data cannot change the rest of the path', () => {
  expect(path`/form/v1/forms/${'../x?y#z/ü'}/data`).toBe('/form/v1/forms/..%2Fx%3Fy%23z%2F%C3%BC/data');
});

it.each(['.', '..'])('the part %s of a path, which a browser and curl would resolve, is refused', (part) => {
  expect(() => path`/form/v1/registers/${part}/entries`).toThrow(`"${part}" cannot be a part of a path`);
});

it.each(['..', 'N/A', 'a\\b'])('the commands that save and delete the entry %s address this entry', (key) => {
  const address = { register: 'symbols', key, keyField: 'value' };
  for (const request of [putRequest(address, { value: key }), removeRequest(address)]) {
    const url = new URL(addressOf(request), 'http://forms');
    expect([url.pathname, Object.fromEntries(url.searchParams)]).toEqual([
      '/form/v1/registers/symbols/entries',
      { key, keyField: 'value' },
    ]);
    expect(curlOf(request)).toContain(addressOf(request));
  }
});

it('members of the query that are empty are left out', () => {
  const request: ApiRequest = { target: 'form-service', path: '/form/v1/forms', query: { top: 25, after: '' } };
  expect(addressOf(request)).toBe('/form/v1/forms?top=25');
});
