// `PLATFORM_BEHAVIOUR=reference` makes the platform server as strict and as rough as the public platform's own services,
// as they were measured: see docs/platform.md. It is for tests only. Each module of this folder imitates one service.
import type pg from 'pg';
import { z } from 'zod';
import type { Clock } from '../../service/clock.ts';
import { isoDuration, parseConfig } from '../../service/operations/config.ts';
import type { Logger } from '../../service/operations/log.ts';
import { type Behaviour, ownBehaviour } from '../behaviour.ts';
import { refuseLargeBodies } from './bodies.ts';
import { createUnlockedEdit } from './changes.ts';
import { createOneByOneJobs } from './jobs.ts';
import { cachedCore, slowLists } from './reads.ts';
import { createReferenceSubscribers, prepareSubscribers } from './subscribers.ts';
import { withoutDateStyles } from './templates.ts';

const settings = z.object({
  PLATFORM_BEHAVIOUR: z.literal(['default', 'reference']).default('default'),
  /** Time for which the event service and the notification service keep core configuration. */
  REFERENCE_CACHE: isoDuration('PT10H'),
  /** Time that an event of a tenant without `fromEmail` takes. */
  REFERENCE_EVENT_TIME: isoDuration('PT10.9S'),
  /** Time between the reading and the writing of one operation. */
  REFERENCE_DELAY: isoDuration('PT0.02S'),
});

/** Times in milliseconds. */
export interface ReferenceTimes {
  cache: number;
  event: number;
  delay: number;
}

/** Returns undefined for this server's own behaviour. Throws ConfigError for an invalid setting. */
export function readReference(env: NodeJS.ProcessEnv): ReferenceTimes | undefined {
  const { PLATFORM_BEHAVIOUR, REFERENCE_CACHE, REFERENCE_EVENT_TIME, REFERENCE_DELAY } = parseConfig(settings, env);
  if (PLATFORM_BEHAVIOUR === 'default') return undefined;
  return { cache: REFERENCE_CACHE, event: REFERENCE_EVENT_TIME, delay: REFERENCE_DELAY };
}

/** Prepares the database for the behaviour that was chosen, and returns the behaviour. */
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
    // An event that is sent twice is delivered twice.
    eventKey: () => undefined,
    findOrCreate: (database) => createReferenceSubscribers(database, delay),
    codeChannels: undefined,
    codesWorkOnce: false,
    pendingNotices: () => async () => undefined,
    jobs: (options, jobs) => createOneByOneJobs(options, jobs, event),
    render: withoutDateStyles,
    concurrency: () => 1,
  };
}
