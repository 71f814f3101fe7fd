// Tests which responses of the service a save repeats, and which it reports to the person.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createApi } from './api.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Saves a draft. The response has this status and, unless `slug` is undefined, describes this problem. */
async function outcomeOf(status: number, slug?: string): Promise<string> {
  const body = slug === undefined ? '<p>A page</p>' : JSON.stringify({ type: `urn:formgate:problem:${slug}` });
  vi.stubGlobal('fetch', async () => new Response(body, { status }));
  const { type } = await createApi('demo').put('form', { data: {}, files: {} }, '"1"', 'save');
  return type;
}

it.each([
  [408, 'request-timeout'],
  [408, undefined],
  [404, undefined],
  [421, undefined],
  [425, undefined],
  [429, 'too-many-requests'],
  [502, undefined],
  [503, 'busy'],
  [507, undefined],
])(
  'a save is repeated unchanged after the status %i (%s), because the same save may succeed later',
  async (status, slug) => {
    expect(await outcomeOf(status, slug)).toBe('retry');
  },
);

it.each([
  [19_000, true],
  [20_000, false],
])(
  'a save of %i euro signs may outlive the page, unless browsers would refuse so many bytes',
  async (count, isKept) => {
    let kept: boolean | undefined;
    vi.stubGlobal('fetch', async (_url: string, { keepalive }: RequestInit) => {
      kept = keepalive;
      return new Response();
    });
    await createApi('demo').put('form', { data: '€'.repeat(count), files: {} }, '"1"', 'save');
    expect(kept).toBe(isKept);
  },
);

it.each([
  [400, 'invalid-request', 'refused'],
  [403, undefined, 'refused'],
  [413, 'body-too-large', 'refused'],
  [413, undefined, 'refused'],
  [401, 'code-entry-required', 'code'],
  [412, 'stale', 'conflict'],
  [404, 'not-found', 'gone'],
  [410, 'gone', 'gone'],
])('a save is not repeated after the status %i (%s): %s', async (status, slug, outcome) => {
  expect(await outcomeOf(status, slug)).toBe(outcome);
});
