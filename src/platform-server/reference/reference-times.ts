// Settings that select the behaviour of the reference implementation, for tests only.
import { z } from 'zod';
import { parseConfig } from '../../service/operations/config.ts';
import { isoDuration } from '../../service/operations/duration.ts';

const settings = z.object({
  PLATFORM_BEHAVIOUR: z.literal(['default', 'reference']).default('default'),
  /** Time for which the event service and the notification service cache core configuration. */
  REFERENCE_CACHE: isoDuration('PT10H', { max: 'P1D' }),
  /** Time for the handling of an event of a tenant without `fromEmail`. */
  REFERENCE_EVENT_TIME: isoDuration('PT10.9S', { max: 'PT1H' }),
  /** Pause between the read and the write of one request. Another request may change the data during this pause. */
  REFERENCE_DELAY: isoDuration('PT0.02S', { max: 'PT1H' }),
});

/** The times of the reference implementation's behaviour, in milliseconds. */
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
