// Loaded into a form service with `--import`, before its main: kills the process with SIGKILL at a step that the test
// has chosen. It wraps methods of pg and of Node's HTTP server, so that the product needs no code for these tests.
//
// - A request with the header `x-crash-at: <n>` has steps: each statement that it sends to Postgres, and its HTTP
//   response. The process is killed before step n.
// - CRASH_DISPATCHER_AT=<n> is for the dispatcher, which sends its statements through a pool, outside of requests. Each
//   statement has two steps: before and after it runs. A query that looks for work has one step, after it has found
//   work. The process is killed at step n.
import { AsyncLocalStorage } from 'node:async_hooks';
import { type IncomingMessage, Server, ServerResponse } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import pg from 'pg';
import './keep-compiled.ts';

interface RequestSteps {
  crashAt: number;
  taken: number;
}

type Emit = (event: string, ...values: unknown[]) => boolean;
type Query = (...values: unknown[]) => unknown;

function end(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
}

function countRequestSteps(current: AsyncLocalStorage<RequestSteps>): void {
  const ofResponse = new WeakMap<ServerResponse, RequestSteps>();
  const take = (steps: RequestSteps | undefined) => {
    if (!steps) return;
    steps.taken += 1;
    if (steps.taken === steps.crashAt) end();
  };
  const emit = Server.prototype.emit as Emit;
  Server.prototype.emit = function (this: Server, event: string, ...values: unknown[]) {
    if (event !== 'request') return emit.call(this, event, ...values);
    const [request, response] = values as [IncomingMessage, ServerResponse];
    const steps = { crashAt: Number(request.headers['x-crash-at'] ?? 0), taken: 0 };
    ofResponse.set(response, steps);
    return current.run(steps, () => emit.call(this, event, ...values));
  } as Emit;
  const query = pg.Client.prototype.query as Query;
  pg.Client.prototype.query = function (this: pg.Client, ...values: unknown[]) {
    take(current.getStore());
    return query.apply(this, values);
  } as typeof pg.Client.prototype.query;
  const endAnswer = ServerResponse.prototype.end as Query;
  ServerResponse.prototype.end = function (this: ServerResponse, ...values: unknown[]) {
    take(ofResponse.get(this));
    return endAnswer.apply(this, values);
  } as typeof ServerResponse.prototype.end;
}

function countDispatcherSteps(current: AsyncLocalStorage<RequestSteps>, crashAt: number): void {
  let taken = 0;
  const take = () => {
    taken += 1;
    if (taken === crashAt) end();
  };
  const counted = (query: PoolQuery): PoolQuery =>
    async function (this: pg.Pool, ...values: unknown[]) {
      // The walks over addresses and over the storage of tenants use the same pool, but are not the dispatcher's.
      const isWalk = /address_index|tenant_storage/.test(String(values[0]));
      if (current.getStore() || isWalk) return query.apply(this, values);
      const isLook = String(values[0]).includes('SKIP LOCKED');
      if (!isLook) take();
      const answer = await query.apply(this, values);
      if (!isLook || foundRows(answer)) take();
      return answer;
    };
  // The product assigns a new `query` method to each pool, so the method is wrapped when it is assigned.
  Object.defineProperty(pg.Pool.prototype, 'query', {
    set(this: pg.Pool, query: PoolQuery) {
      Object.defineProperty(this, 'query', { value: counted(query) });
    },
  });
}

type PoolQuery = (...values: unknown[]) => Promise<unknown>;

function foundRows(answer: unknown): boolean {
  const last: unknown = Array.isArray(answer) ? answer.at(-1) : answer;
  return (last as { rows?: unknown[] } | undefined)?.rows?.length !== 0;
}

// Worker threads load this file too, but only the main thread counts steps.
if (isMainThread) {
  const current = new AsyncLocalStorage<RequestSteps>();
  countRequestSteps(current);
  countDispatcherSteps(current, Number(process.env.CRASH_DISPATCHER_AT ?? 0));
}
