// Describes request headers for the API documentation. The guard or handler that reads a header checks it.

export interface RequestHeader {
  description: string;
  /** True if a request without the header is refused. */
  isRequired?: true;
  /** A value for the example of the call. Without it, the example has a shell variable. */
  example?: string;
}

/** Request headers, keyed by name. A string describes a header that is optional. */
export type RequestHeaders = Readonly<Record<string, string | RequestHeader>>;
