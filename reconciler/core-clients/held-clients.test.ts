// Tests how the Event about kept clients is reported if the API server does not create it.
import { expect, it } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { ClusterError, type ClusterErrorKind } from './cluster-calls.ts';
import { reportHeld } from './held-clients.ts';

it.each<[ClusterErrorKind, string | undefined]>([
  ['refused', undefined],
  ['forbidden', expect.stringContaining('create an Event')],
])(
  'an Event that is %s is logged, and fails the run only if the next one would fail as well',
  async (kind, failure) => {
    const { log, lines } = captureLog();
    const cluster = { createEvent: () => Promise.reject(new ClusterError(kind, 'create an Event')) };
    const report = await reportHeld(['one', 'two'], {
      cluster,
      clock: () => new Date(),
      log,
      renewLease: async () => {},
    });
    expect(report).toEqual({ events: 0, ...(failure && { failure }) });
    expect(lines()).toMatchObject([{ level: 'error', kind }]);
  },
);
