// Runs the script of `helm test` against a stub of the services, with the script's input (question.json) that the chart
// renders.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenOnLoopback } from '../support/loopback-server.ts';
import { chart, helms, pick, render, run } from './helm.ts';

const [helm = ''] = helms();
let location = '';
const stub = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://stub');
  if (pathname === '/health') return response.end('{}');
  if (pathname.endsWith('/auth')) return response.writeHead(302, { location }).end();
  return response.writeHead(401, { 'content-type': 'application/problem+json' }).end('{}');
});
const folder = mkdtempSync(join(tmpdir(), 'formgate-helm-test-'));
let base = '';

beforeAll(async () => {
  base = `http://127.0.0.1:${await listenOnLoopback(stub)}`;
});
afterAll(() => {
  stub.close();
  rmSync(folder, { recursive: true });
});

/** Returns the question that the chart renders for the script. */
async function questionOf(set: Record<string, unknown>) {
  const objects = await render(helm, { files: [join(chart, 'ci/minimal-values.yaml')], set });
  const { data } = pick<{ data: Record<string, string> }>(objects, 'ConfigMap', 'formgate-test');
  return JSON.parse(data['question.json'] ?? '');
}

async function helmTest(provider: string) {
  location = `${provider}?code_challenge_method=S256&state=a`;
  const set = {
    'access.publicUrl': 'https://login.example.org/auth',
    'access.tenantIssuers': { town: 'https://id.town.example/tenant/' },
    'tests.signIn': { tenant: 'Town', clientId: 'permits', callbackUrl: `${base}/callback` },
  };
  const question = { ...(await questionOf(set)), direct: { forms: base, tokenHandler: base } };
  const file = join(folder, 'question.json');
  writeFileSync(file, JSON.stringify(question));
  return run('env', ['TEST_RETRY_MS=0', process.execPath, join(chart, 'files/test.mjs'), file]);
}

test.each([
  'https://login.example.org/auth/realms/town/protocol/openid-connect/auth',
  'https://id.town.example/authorize',
])('a sign-in that redirects to %s passes', async (provider) => {
  const { code, stdout } = await helmTest(provider);
  expect(stdout).toContain('passed  a sign-in with permits redirects to the identity provider');
  expect(code, stdout).toBe(0);
});

test.each(['https://elsewhere.example/authorize', 'https://login.example.org/other', '/relative'])(
  'a sign-in that redirects to %s fails',
  async (provider) => {
    const { code, stdout } = await helmTest(provider);
    expect(stdout).toContain('expected 302 to https://login.example.org/auth or https://id.town.example/tenant/');
    expect(code).toBe(1);
  },
);

test.each([
  [['*.example.org', 'forms.example.org'], 'http://forms.example.org', ''],
  [['*.example.org'], '', ''],
  [['*.example.org', 'forms.example.org'], 'http://10.0.0.1', 'forms.example.org', 'http://10.0.0.1'],
  [['*.example.org'], 'http://10.0.0.1', '', 'http://10.0.0.1'],
])('with the hosts %j, the requests go to "%s" with the Host header "%s"', async (hosts, url, host, given = '') => {
  const set = { 'ingress.enabled': true, 'ingress.hosts': hosts, 'networkPolicy.enabled': false, 'tests.url': given };
  expect(await questionOf(set)).toMatchObject({ url, host });
});
