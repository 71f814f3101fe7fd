// With `PLATFORM_BEHAVIOUR=reference`, the platform server imitates the limits and faults that were measured in the
// public platform's own services (see docs/platform.md). This mode is for tests only. Each module of this folder
// imitates one aspect.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import { type Behaviour, ownBehaviour } from '../behaviour.ts';
import { refuseLargeBodies } from './bodies.ts';
import { createUnlockedEdit } from './changes.ts';
import { createOneByOneJobs } from './jobs.ts';
import { cachedCore, slowLists } from './reads.ts';
import type { ReferenceTimes } from './reference-times.ts';
import { createReferenceSubscribers, prepareSubscribers } from './subscribers.ts';
import { withReferenceDates } from './templates.ts';

/** Prepares the database for the selected behaviour, and returns the behaviour. */
export async function createBehaviour(
  times: ReferenceTimes | undefined,
  { pool, clock, log }: { pool: pg.Pool; clock: Clock; log: Logger },
): Promise<Behaviour> {
  if (!times) return ownBehaviour;
  log.warn(times, 'behaviour of the reference implementation, for tests only');
  await prepareSubscribers(pool);
  return createReference(times, clock);
}

function createReference({ cache, event, delay }: ReferenceTimes, clock: Clock): Behaviour {
  return {
    routes: refuseLargeBodies,
    configurationReads: slowLists,
    consumerReads: (store) => cachedCore(store, { milliseconds: cache, clock }),
    changes: (options, changes) => ({ ...changes, edit: createUnlockedEdit(options, delay) }),
    // If an event is sent twice, it is delivered twice.
    eventKey: () => undefined,
    findOrCreate: (database) => createReferenceSubscribers(database, delay),
    codeChannels: undefined,
    codesWorkOnce: false,
    pendingNotices: () => async () => undefined,
    jobs: (options, jobs) => createOneByOneJobs(options, jobs, event),
    render: withReferenceDates,
    concurrency: () => 1,
  };
}
