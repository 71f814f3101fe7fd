// Tracks whether the notification service knows the notification type that this process registers. The service uses a
// copy of its configuration that may be ten hours old. If the copy does not contain the type, the service responds with
// 404. If the copy contains an old version of the type, the service sends no notices about new events. The log reports
// each change once. A metric is 1 while the type is unknown or old.
import type { Logger } from '../service/operations/log.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface KnownType {
  /** Records that the service does not know the type. Returns the error to throw. */
  missing(): PlatformError;
  /** Records that the service knows the type, possibly in an old version. */
  found(): void;
  /**
   * Records the version of the type that the service knows. Returns true if that version has all events of `wanted`.
   */
  compare(found: FoundType, wanted: readonly EventName[]): boolean;
  /** Returns the channels to which the service sends codes. Undefined if the service has not named them. */
  codeChannels(): readonly string[] | undefined;
}

/** A notification type as the notification service returns it. */
export interface FoundType {
  events: readonly EventName[];
  /** The channels to which the service sends codes. Only the platform server of this repository returns them. */
  codeChannels?: readonly string[] | undefined;
}

export interface EventName {
  namespace: string;
  name: string;
}

const service = 'notifications';
/** Seconds after which a caller may retry a call that failed because the service does not know the type. */
const retryAfter = 30;

type State = 'missing' | 'outdated' | 'current';

const messages: Record<State, string> = {
  missing:
    'registration unknown to the service: codes fail and notices wait until it is restarted or reads it by itself',
  outdated:
    'registration outdated at the service: some notices are not sent until it is restarted or reads it by itself',
  current: 'registration known to the service',
};

export function createKnownType(options: {
  metrics: Pick<PlatformMetrics, 'failures' | 'registrationUnknown'>;
  log: Logger;
}): KnownType {
  const { metrics, log } = options;
  let state: State = 'current';
  let codeChannels: readonly string[] | undefined;
  metrics.registrationUnknown.set({ dependency: service }, 0);
  const change = (next: State) => {
    if (next === state) return;
    state = next;
    log[next === 'current' ? 'info' : 'warn']({ dependency: service }, messages[next]);
    metrics.registrationUnknown.set({ dependency: service }, next === 'current' ? 0 : 1);
  };
  return {
    missing() {
      metrics.failures.inc({ dependency: service, kind: 'unregistered' });
      change('missing');
      return new PlatformError(service, 'unregistered', { retryAfter });
    },
    found() {
      if (state === 'missing') change('current');
    },
    codeChannels: () => codeChannels,
    compare(found, wanted) {
      ({ codeChannels } = found);
      const has = (event: EventName) =>
        found.events.some(({ namespace, name }) => namespace === event.namespace && name === event.name);
      const isCurrent = wanted.every(has);
      change(isCurrent ? 'current' : 'outdated');
      return isCurrent;
    },
  };
}
