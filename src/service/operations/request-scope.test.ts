// Tests the traces that begin with a request, and the scope of a request.
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import {
  currentScope,
  isTraceparent,
  newTraceparent,
  outsideRequests,
  runInScope,
  scopeHeaders,
  traceIdOf,
  traceparentOf,
} from './request-scope.ts';

it('a trace begins with the request id without hyphens, if that is a UUID', () => {
  const id = randomUUID();
  const traceId = id.replaceAll('-', '');
  expect(newTraceparent(id)).toBe(`00-${traceId}-${traceId.slice(16)}-00`);
  expect(traceparentOf(id)).toBe(newTraceparent(id));
  expect(traceIdOf(newTraceparent(id))).toBe(traceId);
});

it.each(['a', 'abc-123_x.y', '0'.repeat(64), randomUUID().toUpperCase(), '0'.repeat(36)])(
  'a trace of any other request id is valid, and always the same: %s',
  (id) => {
    expect(isTraceparent(newTraceparent(id))).toBe(true);
    expect(newTraceparent(id)).toBe(newTraceparent(id));
    expect(newTraceparent(id)).not.toBe(newTraceparent(`${id}1`));
  },
);

it('a scope reaches callbacks and promises, and nothing outside of it', async () => {
  const scope = { requestId: 'one', traceparent: newTraceparent('one') };
  const seen = await runInScope(scope, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return [currentScope(), scopeHeaders(), outsideRequests(currentScope), outsideRequests(() => scopeHeaders())];
  });
  expect(seen).toEqual([scope, { 'x-request-id': 'one', traceparent: scope.traceparent }, undefined, {}]);
  expect(currentScope()).toBeUndefined();
});
