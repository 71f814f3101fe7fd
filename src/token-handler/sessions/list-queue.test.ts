// Tests how many lists of sessions run at the same time.
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { createListQueue, type ListQueue, type SentResponse } from './list-queue.ts';

/** A response that the client has not read until `read` is called. */
class UnreadResponse extends EventEmitter implements SentResponse {
  closed = false;

  read(): void {
    this.closed = true;
    this.emit('close');
  }

  destroy(): void {
    this.read();
  }
}

function ask(queue: ListQueue, tenant: string, member: string) {
  const response = new UnreadResponse();
  let hasStarted = false;
  const done = queue({ tenant, member }, response, async () => {
    hasStarted = true;
  });
  return { response, done, hasStarted: () => hasStarted };
}
const settle = () => new Promise(setImmediate);

it('a person who does not read the lists gets two, and further ones when these are read', async () => {
  const queue = createListQueue();
  const lists = [1, 2, 3].map(() => ask(queue, 'demo', 'ana'));
  await settle();
  expect(lists.map(({ hasStarted }) => hasStarted())).toEqual([true, true, false]);
  lists[0]?.response.read();
  await settle();
  expect(lists[2]?.hasStarted()).toBe(true);
  for (const { response } of lists) response.read();
  await Promise.all(lists.map(({ done }) => done));
});

it('a tenant whose people do not read the lists does not delay other tenants', async () => {
  const queue = createListQueue();
  const unread = Array.from({ length: 20 }, (_, nth) => ask(queue, 'demo', `person ${nth}`));
  await settle();
  expect(unread.filter(({ hasStarted }) => hasStarted())).toHaveLength(4);
  const other = ask(queue, 'other', 'ben');
  await settle();
  expect(other.hasStarted()).toBe(true);
  for (const { response } of [...unread, other]) response.read();
  await Promise.all([...unread, other].map(({ done }) => done));
});

it('more lists than may wait are refused', async () => {
  const queue = createListQueue();
  const lists = Array.from({ length: 13 }, () => ask(queue, 'demo', 'ana'));
  await expect(lists.at(-1)?.done).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  for (const { response } of lists) response.read();
  await Promise.all(lists.slice(0, -1).map(({ done }) => done));
});

it('the connection of a client that does not read its list in time is closed', async () => {
  const { response, done } = ask(createListQueue({ readMs: 20 }), 'demo', 'ana');
  await done;
  expect(response.closed).toBe(true);
});

it('a list that fails ends its turn', async () => {
  const queue = createListQueue();
  const claim = { tenant: 'demo', member: 'ana' };
  const fail = () => queue(claim, new UnreadResponse(), () => Promise.reject(new Error('the store fails')));
  for (let nth = 0; nth < 3; nth += 1) await expect(fail()).rejects.toThrow('the store fails');
});
