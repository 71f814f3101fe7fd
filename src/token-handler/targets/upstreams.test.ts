// Tests which upstream a target has, and which upstream URLs are refused. The test sets the entries of the directory.
import { describe, expect, it } from 'vitest';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Rejection } from '../rejection.ts';
import { type AllowedDomain, parseAllowedDomain } from './upstream-policy.ts';
import { createUpstreams, type Upstreams } from './upstreams.ts';

const urn = 'urn:example:town:api';
const platformUrn = 'urn:example:platform:form';

/** Returns upstreams whose directory resolves every URN to `entry`, or throws `entry` if it is an Error. */
function upstreams(entry: string | Error, allowed: string[] | undefined = ['api.example.ca']) {
  const directory = {
    entry,
    async resolve() {
      if (directory.entry instanceof Error) throw directory.entry;
      return directory.entry;
    },
  };
  const domains = allowed?.map((text) => parseAllowedDomain(text) as AllowedDomain);
  return { directory, ...createUpstreams({ directory, urnPrefix: 'urn:example', allowed: domains }) };
}
const anyHost = (entry: string) => createUpstreams({ ...fixed(entry), urnPrefix: 'urn:example', allowed: undefined });
const fixed = (entry: string) => ({ directory: { resolve: async () => entry } });

const refusalOf = ({ find }: Upstreams, of = urn) =>
  find(of, 'town').then(
    () => undefined,
    ({ slug, reason, cause }: Rejection) => ({ slug, reason, cause }),
  );
const notAllowed = { slug: 'upstream-not-allowed', reason: 'host' };

describe('the upstream of a target', () => {
  it.each([
    ['https://api.example.ca', 'https://api.example.ca', ''],
    ['https://api.example.ca/', 'https://api.example.ca', ''],
    ['https://api.example.ca/base', 'https://api.example.ca', '/base'],
    ['http://api.example.ca:8080/base/v1//', 'http://api.example.ca:8080', '/base/v1'],
    ['https://api.example.ca/a//b', 'https://api.example.ca', '/a//b'],
  ])('of %s has its origin, and its path without trailing slashes', async (url, origin, basePath) => {
    expect(await upstreams(url).find(urn, 'town')).toEqual({ origin, basePath });
  });

  it('is refused if the operator does not allow its host', async () => {
    expect(await refusalOf(upstreams('https://evil.example'))).toMatchObject(notAllowed);
    expect(await refusalOf(upstreams('https://api.example.ca', []))).toMatchObject(notAllowed);
  });

  it('may have any host if the operator has set no list', async () => {
    expect(await anyHost('https://anywhere.example').find(urn, 'town')).toMatchObject({
      origin: 'https://anywhere.example',
    });
  });

  it('may have a host that is not listed only if its URN is in the platform’s namespace', async () => {
    const inside = upstreams('http://form-service:8080');
    expect(await inside.find(platformUrn, 'town')).toMatchObject({ origin: 'http://form-service:8080' });
    for (const other of ['urn:example:platforms:x', 'urn:examples:platform:x', 'urn:other:platform:x'])
      expect(await refusalOf(inside, other)).toMatchObject(notAllowed);
  });

  it.each([
    ...['ftp://api.example.ca', 'file:///etc/passwd', 'wss://api.example.ca', 'httpx://api.example.ca'],
    ...['xhttp://api.example.ca', 'https://user@api.example.ca', 'https://:secret@api.example.ca'],
  ])('is refused even where every host is allowed: %s', async (url) => {
    expect(await refusalOf(anyHost(url))).toMatchObject(notAllowed);
    expect(await refusalOf(upstreams(url), platformUrn)).toMatchObject(notAllowed);
  });

  it('changes, and is checked again, as soon as the directory has another URL', async () => {
    const { directory, find } = upstreams('https://api.example.ca/one');
    expect(await find(urn, 'town')).toEqual(await find(urn, 'town'));
    directory.entry = 'https://api.example.ca/two';
    expect(await find(urn, 'town')).toMatchObject({ basePath: '/two' });
    directory.entry = 'https://evil.example';
    expect(await refusalOf({ find })).toMatchObject(notAllowed);
    expect(await refusalOf({ find })).toMatchObject(notAllowed);
    directory.entry = 'https://api.example.ca/two';
    expect(await find(urn, 'town')).toMatchObject({ basePath: '/two' });
  });

  it('is checked separately for each URN, even if the URL is the same', async () => {
    const { find } = upstreams('http://form-service:8080');
    expect(await find(platformUrn, 'town')).toMatchObject({ basePath: '' });
    expect(await refusalOf({ find })).toMatchObject(notAllowed);
  });
});

describe('an upstream without a usable URL in the directory', () => {
  it('is not allowed if its entry is not an http URL without credentials', async () => {
    const error = new PlatformError('directory', 'failed', { reason: 'unusable' });
    expect(await refusalOf(upstreams(error))).toEqual({ ...notAllowed, cause: error });
  });

  it.each([
    ['has no entry', new PlatformError('directory', 'failed', { reason: 'absent' })],
    ['has a URN that the directory does not accept', new PlatformError('directory', 'rejected')],
  ])('is unresolved if it %s', async (_what, error) => {
    const refusal = await refusalOf(upstreams(error));
    expect(refusal).toEqual({ slug: 'upstream-unresolved', reason: 'target', cause: error });
  });

  it.each([
    ['cannot be reached', new PlatformError('directory', 'unreachable')],
    ['fails', new PlatformError('directory', 'failed')],
    ['has a defect', new TypeError('a defect')],
  ])('causes the directory’s own failure if the directory %s', async (_what, error) => {
    await expect(upstreams(error).find(urn, 'town')).rejects.toBe(error);
  });
});
