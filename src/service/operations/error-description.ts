// Describes errors for log lines. It imports nothing, so that the image's entry point can describe an error even if a
// package cannot be loaded.

/** Replaces the value of a secret. */
export const mask = '[redacted]';

export interface ErrorDescription {
  type: string;
  message: string;
  code?: unknown;
  stack?: string;
  cause?: ErrorDescription;
}

/** Maximum depth of logged causes. The limit is needed because a chain of causes may be circular. */
const deepestCause = 5;

/**
 * Returns the parts of an error that may be logged: name, message, code, stack frames and cause. Omits other
 * properties, because errors of libraries store whole requests, queries and parameters in them. A message that quotes a
 * value is replaced; in other messages, addresses and tokens are masked.
 */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an Error' };
  const code = 'code' in error ? error.code : undefined;
  const frames = stackFrames(error.stack);
  return {
    type: error.name,
    message: quotesValue(error) ? `${error.name} (its message may quote a value)` : maskText(error.message),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(frames && { stack: frames }),
    ...(error.cause !== undefined && depth < deepestCause && { cause: describeError(error.cause, depth + 1) }),
  };
}

/**
 * True if the message may contain a value. Postgres quotes values, JSON.parse quotes its input, and mail servers quote
 * addresses.
 */
function quotesValue(error: Error): boolean {
  return ('severity' in error && 'routine' in error) || error instanceof SyntaxError || 'responseCode' in error;
}

/** The user, the password and the host of a URL. */
const urlCredentials = /\/\/[^\s/"']*@[^\s/:"']*/g;
const emailAddress = /[^\s"'<>:;,()]+@[^\s"'<>:;,()]+/g;
const bearerToken = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const queryPart = /\?[^\s"']+/g;

/**
 * Maximum length of a logged message. Longer messages may contain the input of a request, and the time of masking grows
 * with the square of the length.
 */
const longestMessage = 2_000;

function maskText(message: string): string {
  const text = message.slice(0, longestMessage);
  return text
    .replace(bearerToken, mask)
    .replace(queryPart, `?${mask}`)
    .replace(urlCredentials, `//${mask}`)
    .replace(emailAddress, mask);
}

/** Returns the stack without its first lines, which repeat the message. */
function stackFrames(stack: string | undefined): string {
  return (stack ?? '')
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
