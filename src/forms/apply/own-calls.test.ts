// Tests that the form service counts calls of the intake application for the applicant, whatever proxies are trusted,
// and that another process cannot learn how it recognises these calls.

import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../../dev/ports.ts';
import { startTestApply, type TestApply } from '../../../test/support/apply.ts';
import { startHttpTap } from '../../../test/support/http-tap.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { ownCallHeaders } from '../../service/http/own-calls.ts';

const limit = 5;
let apply: TestApply;
beforeAll(async () => {
  // The address of the first browser is a proxy of which the operator has said that it writes X-Forwarded-For.
  const env = () => ({ ANONYMOUS_READ_LIMIT: String(limit), TRUSTED_PROXIES: '127.0.0.2' });
  apply = await startTestApply({ env });
});
afterAll(() => apply.close());

it('a person who asks for many registers uses up only their own limit', async () => {
  const agent = new Agent({ localAddress: '127.0.0.2' });
  const read = async (address: string, name: string) => {
    const url = `${apply.forms.url}/apply/api/tenants/demo/registers/${name}/entries`;
    const headers = { 'x-forwarded-for': address, 'sec-fetch-site': 'same-origin' };
    const { statusCode, body } = await request(url, { dispatcher: agent, headers });
    await body.dump();
    return statusCode;
  };
  await roomInWindow(60_000, 10_000);
  const statuses: number[] = [];
  for (let nth = 0; nth <= limit; nth += 1) statuses.push(await read('192.0.2.1', `invented-${nth}`));
  expect(statuses).toEqual([...Array.from({ length: limit }, () => 404), 429]);
  expect(await read('192.0.2.2', 'invented')).toBe(404);
  await agent.close();
});

it('a form service at APPLY_API_URL does not get the secret by which this process recognises its own calls', async () => {
  const port = await findFreePort();
  const tap = await startHttpTap(`http://127.0.0.1:${port}`);
  onTestFinished(() => tap.close());
  const other = await startTestApply({ env: () => ({ PORT: String(port), APPLY_API_URL: tap.url }) });
  onTestFinished(() => other.close());
  await other.browser().start();
  expect(tap.exchanges).not.toEqual([]);
  const [secret] = Object.values(ownCallHeaders);
  expect(JSON.stringify(tap.exchanges)).not.toContain(secret);
});
