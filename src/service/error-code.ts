// Reads the codes of errors, such as ECONNREFUSED, or an SQLSTATE. Code that reports a network error reports only its
// code, because its message contains addresses.

export function codeOfError(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Returns the code of the error's cause. `fetch` throws a TypeError whose cause is the network error. */
export function codeOfCause(error: unknown): string | undefined {
  return codeOfError(error instanceof Error ? error.cause : undefined);
}
