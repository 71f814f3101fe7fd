// Creates the spans of this process, if an OpenTelemetry collector is configured. Without a collector, OpenTelemetry is
// not loaded: `startRoot` and `currentSpan` return undefined, and functions with a parameter `work` only call `work`.
import { currentScope, runInScope } from '../operations/request-scope.ts';
import type { RootOptions, Span, SpanOptions } from './span.ts';

/** Milliseconds in which a stopping process sends its last spans. */
export const longestFlush = 2_000;

export interface Tracing {
  startRoot(options: RootOptions): Span;
  /** Number of exports that failed. */
  failures(): number;
  /** Sends the waiting spans. Settles within `longestFlush`, even if the collector does not respond. */
  close(): Promise<void>;
}

// One tracing object for the whole process, because spans also begin in stores, to which no tracing object is passed.
let installed: Tracing | undefined;

export function installTracing(tracing: Tracing | undefined): void {
  installed = tracing;
}

/** Number of exports to the collector that failed since the start of the process. */
export function countExportFailures(): number {
  return installed?.failures() ?? 0;
}

/** True if a collector is configured. */
export function isTracing(): boolean {
  return installed !== undefined;
}

/** Starts a span without a parent in this process. Undefined if no collector is configured. */
export function startRoot(options: RootOptions): Span | undefined {
  return installed?.startRoot(options);
}

/** Starts the span of a request. `parent` is the client's `traceparent`. */
export function startRequest(parent: string | undefined): Span | undefined {
  return installed?.startRoot({ name: 'request', kind: 'server', parent });
}

/** Returns the span of the running work. */
export function currentSpan(): Span | undefined {
  return currentScope()?.span;
}

/**
 * Returns the `traceparent` to store with work that will be done later. Undefined if the current work is not sampled.
 */
export function storedTraceparent(): string | undefined {
  const span = currentSpan();
  return span?.isSampled ? span.traceparent : undefined;
}

/**
 * Returns facts about the current request, to be stored with work that will be done later: its `traceparent` if it is
 * sampled, and its id. Each fact may be undefined.
 */
export function storedOrigin(): [traceparent: string | undefined, requestId: string | undefined] {
  return [storedTraceparent(), currentScope()?.requestId];
}

/** Runs `work` within the span, and then ends the span. */
export async function runIn<T>(span: Span | undefined, work: () => Promise<T>): Promise<T> {
  if (!span) return work();
  try {
    const result = await runInScope({ ...currentScope(), traceparent: span.traceparent, span }, work);
    span.end();
    return result;
  } catch (error) {
    span.end({ error: failureOf(error) });
    throw error;
  }
}

/** Runs `work` in a child of the current span. If there is no current span, or it is not sampled, only runs `work`. */
export function traced<T>(options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const span = currentSpan();
  return span?.isSampled ? runIn(span.child(options), work) : work();
}

const code = /^[\w.-]{1,40}$/;

/** Returns the code of an error, or the name of its class; never its message, which may quote values. */
export function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  for (const member of ['kind', 'slug', 'code'] as const) {
    const value: unknown = (error as unknown as Record<string, unknown>)[member];
    if (typeof value === 'string' && code.test(value)) return value;
  }
  return error.name;
}
