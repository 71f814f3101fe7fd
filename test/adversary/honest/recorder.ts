// What honest users experience: how long each request took, and each one that was not served as it should be.
export type Kind =
  | 'create'
  | 'send code'
  | 'code mail'
  | 'read'
  | 'save'
  | 'submit'
  | 'list forms'
  | 'read register'
  | 'write register'
  | 'target GET'
  | 'target POST'
  | 'download'
  | 'upload'
  | 'events'
  | 'sessions'
  | 'sign-in';

export interface Sample {
  kind: Kind;
  /** In which it began: the name of an adversary, or `baseline`. */
  phase: string;
  milliseconds: number;
}

export interface Failure {
  kind: Kind;
  phase: string;
  /** In words; never a token or a code. */
  what: string;
  /** 0 without a response. */
  status: number;
  hasRetryAfter: boolean;
  /** The user saw something that cannot be true: other data, another person, a sign-out. */
  isWrong: boolean;
}

export interface Recorder {
  phase: string;
  samples: Sample[];
  failures: Failure[];
  /** Runs a step of a user and records how long it took, or how it failed. Rejects after a failure. */
  measure<T>(kind: Kind, step: () => Promise<T>): Promise<T>;
  fail(failure: Omit<Failure, 'phase'>): void;
}

/** A step failed in a way that is recorded: the user begins anew. */
export class Unserved extends Error {
  readonly status: number;
  readonly hasRetryAfter: boolean;
  readonly isWrong: boolean;

  constructor(what: string, facts: { status?: number; hasRetryAfter?: boolean; isWrong?: boolean } = {}) {
    super(what);
    this.status = facts.status ?? 0;
    this.hasRetryAfter = facts.hasRetryAfter ?? false;
    this.isWrong = facts.isWrong ?? false;
  }
}

/** Throws an Unserved that no fault excuses unless it holds. */
export function mustSee(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Unserved(what, { isWrong: true });
}

export function createRecorder(): Recorder {
  const recorder: Recorder = {
    phase: 'start',
    samples: [],
    failures: [],
    fail: (failure) => void recorder.failures.push({ ...failure, phase: recorder.phase }),
    async measure(kind, step) {
      const { phase } = recorder;
      const started = performance.now();
      const done = () => recorder.samples.push({ kind, phase, milliseconds: performance.now() - started });
      try {
        const result = await step();
        done();
        return result;
      } catch (error) {
        done();
        const unserved = error instanceof Unserved ? error : new Unserved(describe(error));
        const { message: what, status, hasRetryAfter, isWrong } = unserved;
        // A request that two phases saw may have failed for either.
        const phases = phase === recorder.phase ? phase : `${phase} + ${recorder.phase}`;
        recorder.failures.push({ kind, phase: phases, what, status, hasRetryAfter, isWrong });
        throw unserved;
      }
    },
  };
  return recorder;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}
