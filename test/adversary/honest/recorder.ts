// Records what honest users experience: the latency of each request, and every failure.
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
  /** The phase in which the step began: the name of an adversary, or `baseline`. */
  phase: string;
  milliseconds: number;
}

export interface Failure {
  kind: Kind;
  phase: string;
  /** A description without tokens and codes. */
  what: string;
  /** 0 if there was no response. */
  status: number;
  hasRetryAfter: boolean;
  /** The user saw something wrong: other data, another person, a sign-out. */
  isWrong: boolean;
}

export interface Recorder {
  phase: string;
  samples: Sample[];
  failures: Failure[];
  /** Runs a step of a user and records its latency or its failure. Rejects after a failure. */
  measure<T>(kind: Kind, step: () => Promise<T>): Promise<T>;
  /** Records a failure of something that began in the phase `begun`. */
  fail(failure: Omit<Failure, 'phase'>, begun?: string): void;
}

/** A failed step, which is recorded; the user begins a new round. */
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

/** If the condition is false, throws an Unserved that no fault excuses. */
export function mustSee(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Unserved(what, { isWrong: true });
}

export function createRecorder(): Recorder {
  const recorder: Recorder = {
    phase: 'start',
    samples: [],
    failures: [],
    fail(failure, begun = recorder.phase) {
      // If the phase changed meanwhile, either phase may be the cause.
      const phase = begun === recorder.phase ? begun : `${begun} + ${recorder.phase}`;
      recorder.failures.push({ ...failure, phase });
    },
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
        recorder.fail({ kind, what, status, hasRetryAfter, isWrong }, phase);
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
