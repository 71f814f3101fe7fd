// Tests that a form service which stops still finishes the requests of the applicants' pages.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTestApply, type TestApply } from '../../../test/support/apply.ts';

let apply: TestApply;
let closed: Promise<void> | undefined;
const close = () => {
  closed ??= apply.close();
  return closed;
};
beforeEach(async () => {
  closed = undefined;
  apply = await startTestApply();
});
afterEach(() => close());

/** True if the form service accepts connections. */
async function isListening(): Promise<boolean> {
  const socket = connect(Number(new URL(apply.forms.url).port), '127.0.0.1');
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

it('data that a page is sending when the service stops is saved', async () => {
  const browser = apply.browser();
  const { id, etag } = await browser.start();
  const body = JSON.stringify({ data: { name: 'Ana' }, files: {} });
  const save = request(`${apply.forms.url}/apply/api/tenants/demo/forms/${id}/data`, {
    method: 'PUT',
    headers: {
      ...{ 'x-formgate-apply': '1', origin: apply.origin, 'sec-fetch-site': 'same-origin', 'if-match': etag },
      cookie: [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; '),
      ...{ 'content-type': 'application/json', 'content-length': body.length },
    },
  });
  const answered = once(save, 'response') as Promise<[IncomingMessage]>;
  await new Promise<unknown>((resolve) => save.write(body.slice(0, 10), resolve));
  // The service has read the head of this request when a later request gets its response.
  await browser.ask('GET', `/forms/${id}`);
  void close();
  await expect.poll(isListening).toBe(false);
  save.end(body.slice(10));
  const [response] = await answered;
  expect([response.statusCode, await text(response)]).toEqual([200, expect.any(String)]);
});
