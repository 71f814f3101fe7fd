// The SQL condition for events that wait for their routing.

/** True for an event that is neither routed nor in quarantine. `event` is the alias of the table `events`. */
export const isUnrouted = (event: string): string => `${event}.routed IS NULL AND NOT EXISTS (
  SELECT FROM quarantine q WHERE q.kind = 'event' AND q.item = ${event}.sequence::text AND NOT q.released)`;
