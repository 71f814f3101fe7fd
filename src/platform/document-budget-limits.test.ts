// Tests the limits of a document budget exactly: memory, rates, and fetches at the same time. How a cache uses it is in
// document-budget.test.ts.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDocumentBudget, type DocumentBudget, exceedsMemory, memoryBudget, memoryOf } from './document-budget.ts';

const mib = 1_048_576;
const refused = { kind: 'over-budget', service: 'configuration', status: 503, headers: { 'Retry-After': '5' } };

let now: number;
let budget: DocumentBudget;
beforeEach(() => {
  vi.useFakeTimers();
  now = 1_800_000_000_000;
  budget = createDocumentBudget(() => new Date(now));
});
afterEach(() => void vi.useRealTimers());

/** Fetches a document of this size for the cache. */
const fetchSize = (bytes: number, share = 'tenant') =>
  budget.fetch(
    share === 'platform' ? undefined : share,
    async () => 'x',
    () => bytes,
  );
/** A document whose estimated memory is `bytes`. */
const textOf = (bytes: number) => 'x'.repeat((bytes - 24) / 2);
const readSize = (bytes: number, share = 'tenant') => budget.read(share, async () => textOf(bytes));

describe('documents for a cache', () => {
  it('are returned with their size, which is measured after the fetch', async () => {
    const sizes: unknown[] = [];
    const fetched = budget.fetch(
      'tenant',
      async () => 'the document',
      (value) => sizes.push(value) + 6,
    );
    expect(await fetched).toEqual({ value: 'the document', bytes: 7 });
    expect(sizes).toEqual(['the document']);
    expect(budget.memory).toBe(64 * mib);
  });

  it('of a tenant may take 64 MiB, and 4 MiB more each second', async () => {
    await fetchSize(64 * mib - 1);
    await fetchSize(4 * mib + 1);
    await expect(fetchSize(1)).rejects.toMatchObject(refused);
    now += 1_000;
    await expect(fetchSize(1)).rejects.toMatchObject(refused);
    now += 1;
    await fetchSize(1);
  });

  it('of all tenants may take five times as much', async () => {
    for (const share of ['a', 'b', 'c', 'd', 'e']) await fetchSize(64 * mib, share);
    await expect(fetchSize(1, 'f')).rejects.toMatchObject(refused);
    now += 1_000;
    await fetchSize(19 * mib, 'f');
    await fetchSize(mib, 'g');
    await expect(fetchSize(1, 'h')).rejects.toMatchObject(refused);
  });

  it('of the platform are not limited', async () => {
    for (let nth = 0; nth < 30; nth += 1) expect(await fetchSize(64 * mib, 'platform')).toMatchObject({ value: 'x' });
    await expect(fetchSize(1)).resolves.toEqual({ value: 'x', bytes: 1 });
  });
});

describe('documents that are not cached', () => {
  it('of a tenant may take 128 MiB, and 16 MiB more each second, beside those for the cache', async () => {
    await fetchSize(65 * mib);
    await readSize(128 * mib);
    await expect(readSize(100)).rejects.toMatchObject(refused);
    now += 1_000;
    expect(await readSize(15 * mib)).toHaveLength(7.5 * mib - 12);
    await readSize(mib);
    await expect(readSize(100)).rejects.toMatchObject(refused);
  });

  it('of all tenants may take five times as much', async () => {
    for (const share of ['a', 'b', 'c', 'd', 'e']) await readSize(128 * mib, share);
    await expect(readSize(100, 'f')).rejects.toMatchObject(refused);
  });

  it('of the platform are not limited', async () => {
    for (let nth = 0; nth < 6; nth += 1)
      expect(await budget.read(undefined, async () => textOf(128 * mib))).toHaveLength(64 * mib - 12);
    await expect(readSize(100)).resolves.toHaveLength(38);
  });
});

describe('fetches at the same time', () => {
  const silence = () => new Promise<string>(() => undefined);
  const start = (share: string | undefined, started: string[] = []) => {
    const load = () => {
      started.push(share ?? 'platform');
      return silence();
    };
    return budget.fetch(share, load, () => 1).catch((error: unknown) => error);
  };

  it('are two of a tenant, and twenty in total', async () => {
    const started: string[] = [];
    for (let tenant = 0; tenant < 11; tenant += 1)
      for (let nth = 0; nth < 3; nth += 1) void start(`tenant ${tenant}`, started);
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toHaveLength(20);
    expect(started.filter((share) => share === 'tenant 0')).toHaveLength(2);
    void start(undefined, started);
    expect(started.at(-1)).toBe('platform');
  });

  it('wait if there are at most 400 of a tenant', async () => {
    for (let nth = 0; nth < 402; nth += 1) void start('tenant');
    expect(await start('tenant')).toMatchObject(refused);
    await expect(fetchSize(1, 'other')).resolves.toBeDefined();
  });

  it('wait for at most five seconds', async () => {
    void start('tenant');
    void start('tenant');
    let outcome: unknown;
    void start('tenant').then((error) => (outcome = error));
    await vi.advanceTimersByTimeAsync(4_999);
    expect(outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome).toMatchObject(refused);
  });

  it('that fail report their error, cost nothing, and let the next ones start', async () => {
    const error = new Error('the service failed');
    for (let nth = 0; nth < 3; nth += 1) {
      const failing = budget.fetch(
        'tenant',
        () => Promise.reject(error),
        () => 64 * mib,
      );
      await expect(failing).rejects.toBe(error);
    }
    await expect(fetchSize(1)).resolves.toBeDefined();
  });
});

it('the reconciler may read any number of documents, and keeps as much memory of them as a service', async () => {
  expect(memoryBudget.memory).toBe(64 * mib);
  for (let nth = 0; nth < 3; nth += 1) {
    const fetched = memoryBudget.fetch(
      'tenant',
      async () => 'x',
      () => 64 * mib,
    );
    expect(await fetched).toEqual({ value: 'x', bytes: 64 * mib });
    expect(await memoryBudget.read('tenant', async () => 'y')).toBe('y');
  }
});

describe('the estimated memory', () => {
  it.each([
    ['', 24],
    ['ab', 28],
    [7, 16],
    [null, 16],
    [undefined, 16],
    [[], 32],
    [[1, 'a'], 32 + 2 * 8 + 16 + 26],
    [{}, 56],
    [{ a: 1, bc: null }, 56 + (32 + 2 + 16) + (32 + 4 + 16)],
    [{ a: [{}] }, 56 + 32 + 2 + (32 + 8 + 56)],
  ])('of %j is %i bytes', (value, bytes) => {
    expect(memoryOf(value)).toBe(bytes);
  });

  it.each(['[', '{'])('of a text that consists of %s is too much from 1,157,050 characters on', (bracket) => {
    expect(exceedsMemory(bracket.repeat(1_157_049))).toBe(false);
    expect(exceedsMemory(bracket.repeat(1_157_050))).toBe(true);
  });

  it('of a text adds two bytes for a character, 56 for a bracket and 32 for a comma', () => {
    const brackets = '[{'.repeat(500_000);
    const commas = ','.repeat(267_907);
    expect(exceedsMemory(`${brackets}${commas}${' '.repeat(13)}`)).toBe(false);
    expect(exceedsMemory(`${brackets}${commas}${' '.repeat(14)}`)).toBe(true);
    expect(exceedsMemory(`${' '.repeat(12)}${brackets}${commas},`)).toBe(true);
  });
});
