// Tests what the interceptor sends, and which responses it lets through. Tests with real connections are in
// ../auth/provider-fetch.test.ts.
import type { Dispatcher } from 'undici';
import { beforeEach, describe, expect, it } from 'vitest';
import { uncompressedResponses } from './uncompressed-responses.ts';

let sent: Dispatcher.DispatchOptions[];
/** What the caller of the request was told. */
let received: unknown[][];
let aborted: Error[];
beforeEach(() => {
  [sent, received, aborted] = [[], [], []];
});

/** Requests with these headers, and responds with those. Returns what the dispatcher has returned. */
function exchange(headers: Record<string, string>, responseHeaders: Record<string, string>): boolean {
  const dispatch: Dispatcher['dispatch'] = (options, handler) => {
    sent.push(options);
    const controller = { abort: (error: Error) => void aborted.push(error) };
    handler.onResponseStart?.(controller as Dispatcher.DispatchController, 200, responseHeaders, 'OK');
    return true;
  };
  const handler: Dispatcher.DispatchHandler = {
    onResponseStart: (_controller, ...given) => void received.push(given),
  };
  return uncompressedResponses(dispatch)({ path: '/keys', method: 'GET', headers }, handler);
}

describe('a request', () => {
  it('asks for no content coding, and keeps everything else', () => {
    expect(exchange({ accept: 'application/json', 'accept-encoding': 'gzip, br' }, {})).toBe(true);
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
    expect(sent).toEqual([{ path: '/keys', method: 'GET', headers }]);
  });
});

describe('a response', () => {
  it.each([{}, { 'content-encoding': 'identity' }])('with the headers %j is passed on', (headers) => {
    exchange({}, headers);
    expect(received).toEqual([[200, headers, 'OK']]);
    expect(aborted).toEqual([]);
  });

  it.each(['gzip', 'br', 'deflate', 'zstd', 'identity, gzip', ''])(
    'that is compressed with %j is an error',
    (coding) => {
      exchange({}, { 'content-encoding': coding });
      expect(received).toEqual([]);
      expect(aborted).toMatchObject([{ message: expect.stringContaining('the response is compressed') }]);
    },
  );
});
