// Creates the spans of calls to Postgres and Redis, according to the semantic conventions of OpenTelemetry. A span
// names the kind of its statement. It never contains the statement's text, which may contain values.
import type pg from 'pg';
import type { SpanOptions } from './span.ts';
import { isTracing, traced } from './tracing.ts';

const postgres = { 'db.system.name': 'postgresql' };

export const transactionSpan: SpanOptions = { name: 'transaction', kind: 'client', attributes: postgres };

/** The span of a command or a script. It has no details, because scripts have no names, and keys contain ids. */
export const redisSpan: SpanOptions = { name: 'redis', kind: 'client', attributes: { 'db.system.name': 'redis' } };

const words = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

/**
 * Returns the span of a statement. The span's name is the first word of the statement if that word is in `words`. For
 * other statements, such as `WITH`, the name is the first INSERT, UPDATE or DELETE in the text, or else SELECT.
 */
function statementSpan(text: string): SpanOptions {
  const found = text.match(/\b(?:INSERT|UPDATE|DELETE)\b/g)?.[0] ?? 'SELECT';
  const first = /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? '';
  const name = words.includes(first) ? first : found;
  return { name, kind: 'client', attributes: { ...postgres, 'db.operation.name': name } };
}

/**
 * Adds a span to each statement that `pool.query` gets as a text, without a callback. The span includes the wait for a
 * connection. Does nothing if no collector is configured.
 */
export function tracePool(pool: pg.Pool): void {
  if (!isTracing()) return;
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>;
  const tracedQuery = (...given: unknown[]) => {
    const [text] = given;
    return typeof text === 'string' ? traced(statementSpan(text), () => query(...given)) : query(...given);
  };
  Object.assign(pool, { query: tracedQuery });
}
