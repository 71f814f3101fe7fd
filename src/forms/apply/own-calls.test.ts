// Tests that the form service counts calls of the intake application for the applicant, whatever proxies are trusted.

import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApply, type TestApply } from '../../../test/support/apply.ts';

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
  const statuses: number[] = [];
  for (let nth = 0; nth <= limit; nth += 1) statuses.push(await read('192.0.2.1', `invented-${nth}`));
  expect(statuses).toEqual([...Array.from({ length: limit }, () => 404), 429]);
  expect(await read('192.0.2.2', 'invented')).toBe(404);
  await agent.close();
});
