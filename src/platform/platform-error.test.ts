// Tests which failures count as the decision of a service about one call.
import { expect, it } from 'vitest';
import { isRejection, PlatformError } from './platform-error.ts';

it.each([
  [true, 'the service itself', new PlatformError('notifications', 'rejected', { upstreamStatus: 400 })],
  [false, 'a proxy before it', new PlatformError('notifications', 'rejected', { upstreamStatus: 421 })],
  [false, 'the directory', new PlatformError('directory', 'rejected', { upstreamStatus: 400 })],
  [false, 'the identity provider', new PlatformError('identity-provider', 'denied', { upstreamStatus: 400 })],
  [false, 'the service, which fails', new PlatformError('notifications', 'failed', { upstreamStatus: 400 })],
  [false, 'nobody: the call was not sent', new PlatformError('notifications', 'rejected')],
  [false, 'our own code', new Error('400')],
])('a rejection counts: %s, by %s', (counts, _by, error) => {
  expect(isRejection(error, 'notifications', [400, 404])).toBe(counts);
});
