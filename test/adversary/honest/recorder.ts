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
  /** The phase at the start of the step: names of adversaries, or `baseline`. */
  phase: string;
  milliseconds: number;
}

export interface Failure {
  kind: Kind;
  /** The phases during which the step ran, joined with ` + `: each of them may be the cause. */
  phase: string;
  /** A description of the failure, without tokens and codes. */
  what: string;
  /** 0 if there was no response. */
  status: number;
  hasRetryAfter: boolean;
  /** True if the user saw something wrong: other data, another person, a sign-out. */
  isWrong: boolean;
}

export interface Recorder {
  /**
   * The phase that a run is in. If the phase changes during a step, a failure of the step belongs to both phases, and
   * the step's latency belongs to the first.
   */
  phase: string;
  samples: Sample[];
  failures: Failure[];
  /** Runs a step of a user, and records its latency. If the step fails, also records the failure, and rejects. */
  measure<T>(kind: Kind, step: () => Promise<T>): Promise<T>;
  /**
   * Records a failure. `began` is the value of `performance.now()` when the step began; by default, the current value.
   */
  fail(failure: Omit<Failure, 'phase'>, began?: number): void;
}

/**
 * The error of a failed step, which `measure` records and throws. The error ends the user's current round (see
 * persona.ts).
 */
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

/** If `holds` is false, throws an Unserved with `isWrong`, which no adversary excuses. */
export function mustSee(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Unserved(what, { isWrong: true });
}

export function createRecorder(): Recorder {
  const phases = [{ name: 'start', from: 0 }];
  const samples: Sample[] = [];
  const failures: Failure[] = [];
  const current = () => phases.at(-1)?.name ?? '';

  function fail(failure: Omit<Failure, 'phase'>, began = performance.now()): void {
    const first = phases.findLastIndex(({ from }) => from <= began);
    const names = new Set(phases.slice(Math.max(first, 0)).map(({ name }) => name));
    failures.push({ ...failure, phase: [...names].join(' + ') });
  }

  async function measure<T>(kind: Kind, step: () => Promise<T>): Promise<T> {
    const phase = current();
    const began = performance.now();
    const done = () => samples.push({ kind, phase, milliseconds: performance.now() - began });
    try {
      const result = await step();
      done();
      return result;
    } catch (error) {
      done();
      const unserved = error instanceof Unserved ? error : new Unserved(describe(error));
      const { message: what, status, hasRetryAfter, isWrong } = unserved;
      fail({ kind, what, status, hasRetryAfter, isWrong }, began);
      throw unserved;
    }
  }

  return {
    get phase() {
      return current();
    },
    set phase(name) {
      phases.push({ name, from: performance.now() });
    },
    ...{ samples, failures, fail, measure },
  };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}
