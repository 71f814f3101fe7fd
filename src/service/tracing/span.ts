// A span: a piece of work in a trace, as OpenTelemetry defines it.
//
// A span never holds a path, a query string, a token, a code, an address or form data: only route patterns, statuses,
// kinds of failures, and names of dependencies.

export type Attributes = Record<string, string | number>;

export interface SpanOptions {
  /** A constant name, or one that consists of a method and a route pattern. */
  name: string;
  kind: 'server' | 'client' | 'consumer' | 'internal';
  attributes?: Attributes;
}

export interface RootOptions extends SpanOptions {
  /** The `traceparent` of the caller. The sampler decides whether its sampled flag counts. */
  parent?: string | undefined;
  /** The `traceparent` of an earlier span that caused this span. If that span is sampled, this span is sampled too. */
  link?: string | undefined;
}

export interface SpanEnd {
  /** Replaces the name that the span had at its start. */
  name?: string;
  attributes?: Attributes;
  /** The kind of failure, if the work failed: a status or a code, never a message. */
  error?: string | undefined;
}

export interface Span {
  /** Id of the trace: 32 hexadecimal digits. */
  readonly traceId: string;
  /** Id of the span: 16 hexadecimal digits. */
  readonly spanId: string;
  /** W3C Trace Context, version 00, for calls that belong to this span. */
  readonly traceparent: string;
  /** False if the span is not exported. Then its children are not exported either. */
  readonly isSampled: boolean;
  child(options: SpanOptions): Span;
  set(attributes: Attributes): void;
  /** Ends the span. Call this method once. */
  end(result?: SpanEnd): void;
}
