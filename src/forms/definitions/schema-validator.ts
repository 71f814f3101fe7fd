// Validates answers against a definition's data schema in worker threads, started when first needed. A schema that takes
// too long (a regular expression that backtracks, a combinatorial explosion) or too much memory costs its own worker and
// its own request, and nobody else's event loop.
import { Worker } from 'node:worker_threads';
import { type FieldError, Problem } from '../../service/problem.ts';
import { type FormDefinition, unusable } from './definition.ts';

/** `data` and `schema` are JSON text. */
export interface WorkerQuestion {
  key: string;
  schema: string;
  data: string;
}

export type WorkerAnswer = { errors: FieldError[] } | { unusable: string };

export interface SchemaValidator {
  /**
   * Every failing place of the answers (JSON text of `data`), none if they are valid. Throws Problem
   * `definition-invalid` for a schema that cannot be used, `unavailable` when too many wait.
   */
  validate(tenantId: string, definition: FormDefinition, data: string): Promise<FieldError[]>;
  close(): Promise<void>;
}

export interface SchemaValidatorOptions {
  /** Worker threads at most. */
  workers?: number;
  /** Milliseconds for one validation, compiling included. */
  timeout?: number;
  /** Milliseconds after which an idle worker ends. */
  idle?: number;
}

interface Job {
  question: WorkerQuestion;
  settle(outcome: WorkerAnswer): void;
}

const queueLimit = 200;
const tooLong = { unusable: 'Its data schema takes too much time or memory.' };

export function createSchemaValidator({
  workers = 2,
  timeout = 2_000,
  idle = 60_000,
}: SchemaValidatorOptions = {}): SchemaValidator {
  const queue: Job[] = [];
  const idling: Runner[] = [];
  const running = new Set<Runner>();

  function next(): void {
    if (queue.length === 0) return;
    const runner = idling.pop();
    const job = runner && queue.shift();
    if (job) runner.run(job);
    else if (running.size < workers) running.add(start());
  }

  function start(): Runner {
    const leave = () => {
      const index = idling.indexOf(runner);
      if (index >= 0) idling.splice(index, 1);
    };
    const runner = createRunner({
      timeout,
      idle,
      onIdle() {
        idling.push(runner);
        next();
      },
      onRetire: leave,
      onExit(started) {
        leave();
        running.delete(runner);
        // A worker that cannot even start must not be started again and again for the same job.
        if (!started) queue.shift()?.settle(tooLong);
        next();
      },
    });
    return runner;
  }

  return {
    async validate(tenantId, definition, data) {
      if (definition.dataSchema === true || isEmpty(definition.dataSchema)) return [];
      if (queue.length >= queueLimit)
        throw new Problem('unavailable', 'Too many forms are being validated.', { headers: { 'Retry-After': '2' } });
      const key = `${tenantId}\0${definition.id}\0${definition.schemaKey}`;
      const question = { key, schema: JSON.stringify(definition.dataSchema), data };
      const outcome = await new Promise<WorkerAnswer>((settle) => {
        queue.push({ question, settle });
        next();
      });
      if ('unusable' in outcome) throw unusable(definition.id, outcome.unusable);
      return outcome.errors;
    },
    async close() {
      await Promise.all([...running].map((runner) => runner.end()));
    },
  };
}

interface Runner {
  run(job: Job): void;
  end(): Promise<void>;
}

interface RunnerOptions {
  timeout: number;
  idle: number;
  /** Ready for a job. */
  onIdle(): void;
  /** Idle for too long: takes no more jobs. */
  onRetire(): void;
  onExit(started: boolean): void;
}

function createRunner(options: RunnerOptions): Runner {
  const worker = new Worker(new URL('./schema-worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 2 },
  });
  // It must not keep the process alive; a running job is waited for by its request.
  worker.unref();
  let started = false;
  let job: Job | undefined;
  let timer: NodeJS.Timeout | undefined;

  function settle(outcome: WorkerAnswer): void {
    clearTimeout(timer);
    job?.settle(outcome);
    job = undefined;
  }

  function retire(): void {
    options.onRetire();
    void worker.terminate();
  }

  worker.on('message', (outcome: WorkerAnswer | 'ready') => {
    started = true;
    if (outcome !== 'ready') settle(outcome);
    timer = setTimeout(retire, options.idle).unref();
    options.onIdle();
  });
  // Out of memory or out of stack: the exit follows.
  worker.on('error', () => settle(tooLong));
  worker.on('exit', () => {
    settle(tooLong);
    options.onExit(started);
  });

  return {
    run(given) {
      clearTimeout(timer);
      job = given;
      timer = setTimeout(() => void worker.terminate(), options.timeout);
      worker.postMessage(given.question);
    },
    async end() {
      await worker.terminate();
    },
  };
}

function isEmpty(schema: object | false): boolean {
  return schema !== false && Object.keys(schema).length === 0;
}
