// Concurrent saves and reads at two replicas of the form service with one database.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeFor, draft, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import type { Answered } from '../support/platform.ts';

let world: FormWorld;
let replicas: [FormReplica, FormReplica];
beforeAll(async () => {
  world = await startFormWorld();
  replicas = [await world.start(), await world.start()];
});
afterAll(() => world.close());

interface FormBody {
  data: { saver?: string; nth?: number; text?: string };
  files: object;
}

const replicaOf = (nth: number) => replicas[nth % 2] as FormReplica;
const save = (replica: FormReplica, id: string, body: FormBody, ifMatch?: string) =>
  replica.ask('PUT', `/${id}/data`, {
    as: 'intake',
    body,
    ...(ifMatch !== undefined && { headers: { 'if-match': ifMatch } }),
  });
const tagOf = ({ headers }: Answered) => headers.get('etag') ?? '';

/** Creates a draft, and returns a function that reads it with the applicant's code. */
async function readableDraft(address: string) {
  const id = await draft(replicas[0], address);
  await replicas[0].ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
  const headers = { 'x-form-code': await codeFor(world.platform, address) };
  return { id, read: (replica: FormReplica) => replica.ask('GET', `/${id}/data`, { as: 'intake', headers }) };
}

describe('two concurrent saves with the same ETag', () => {
  it('get one 200 and one 412, and the form data is that of the 200', async () => {
    const id = await draft(replicas[0]);
    let tag = '"1"';
    for (let round = 0; round < 50; round += 1) {
      const bodies = ['one', 'two'].map((saver) => ({ data: { saver, nth: round }, files: {} }));
      const responses = await Promise.all(bodies.map((body, nth) => save(replicaOf(nth), id, body, tag)));
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 412]);
      const winner = responses.findIndex(({ status }) => status === 200);
      const kept = await replicaOf(round).ask('GET', `/${id}/data`, { as: 'admin' });
      expect(kept.body).toEqual(bodies[winner]);
      tag = tagOf(kept);
      expect(tag).toBe(tagOf(responses[winner] as Answered));
    }
  });
});

describe('1,000 interleaved reads and saves', () => {
  /** The form data of each successful save, keyed by the revision in the response to the save. */
  const saved = new Map<number, FormBody>();
  const revisionOf = (tag: string) => Number(/^"(\d+)"$/.exec(tag)?.[1]);
  let reads = 0;
  let refusals = 0;

  /** Saves 40 times, each time with the last revision that this saver has seen. After a 412, reads the form again. */
  async function saver(nth: number, id: string, read: (replica: FormReplica) => Promise<Answered>): Promise<void> {
    const own = replicaOf(nth);
    let tag = tagOf(await read(own));
    for (let done = 0; done < 40; ) {
      const body = { data: { saver: `saver ${nth}`, nth: done, text: 'x'.repeat(500 + done) }, files: {} };
      const response = await save(own, id, body, tag);
      if (response.status === 200) {
        expect(revisionOf(tagOf(response))).toBe(revisionOf(tag) + 1);
        expect(saved.has(revisionOf(tagOf(response)))).toBe(false);
        saved.set(revisionOf(tagOf(response)), body);
        tag = tagOf(response);
        done += 1;
        // Yield to other savers, so that this saver sometimes gets 412.
        await sleep(Math.random() * 4);
      } else {
        expect(response.status).toBe(412);
        refusals += 1;
        tag = tagOf(await checkedRead(own, read));
      }
    }
  }

  const seen: [revision: number, body: unknown][] = [];
  async function checkedRead(replica: FormReplica, read: (replica: FormReplica) => Promise<Answered>) {
    const response = await read(replica);
    expect(response.status).toBe(200);
    reads += 1;
    seen.push([revisionOf(tagOf(response)), response.body]);
    return response;
  }

  it('lose no save: each 200 is one revision, each revision contains the data of its save, and reads change nothing', async () => {
    const { id, read } = await readableDraft('saves@example.org');
    saved.set(1, { data: {}, files: {} });
    await checkedRead(replicas[0], read);
    const reader = async (nth: number) => {
      while (saved.size + refusals + reads < 1_000) await checkedRead(replicaOf(nth), read);
    };
    await Promise.all([
      ...Array.from({ length: 8 }, (_, nth) => saver(nth, id, read)),
      ...Array.from({ length: 6 }, (_, nth) => reader(nth)),
    ]);
    expect(reads + refusals + saved.size).toBeGreaterThanOrEqual(1_000);
    expect(saved.size).toBe(1 + 8 * 40);
    const last = await replicas[1].ask('GET', `/${id}/data`, { as: 'admin' });
    expect(revisionOf(tagOf(last))).toBe(saved.size);
    expect(last.body).toEqual(saved.get(saved.size));
    for (const [revision, body] of seen) expect([revision, body]).toEqual([revision, saved.get(revision)]);
  });

  it('without If-Match lose no save either: each 200 is one revision, and the form contains the data of the last', async () => {
    const { id, read } = await readableDraft('last-wins@example.org');
    const sent = new Map<string, FormBody>();
    await Promise.all(
      Array.from({ length: 10 }, async (_, nth) => {
        for (let done = 0; done < 10; done += 1) {
          const body = { data: { saver: `saver ${nth}`, nth: done }, files: {} };
          const response = await save(replicaOf(nth + done), id, body);
          expect(response).toMatchObject({ status: 200, body });
          expect(sent.has(tagOf(response))).toBe(false);
          sent.set(tagOf(response), body);
          expect((await read(replicaOf(nth))).status).toBe(200);
        }
      }),
    );
    expect(sent.size).toBe(100);
    const last = await read(replicas[0]);
    expect(tagOf(last)).toBe('"101"');
    expect(last.body).toEqual(sent.get('"101"'));
  });
});
