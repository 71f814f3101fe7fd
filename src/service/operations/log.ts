// JSON log lines. Only what a caller passes is logged, so nothing here may be handed a token, cookie, code, address or
// answer; what is masked below is the second line of defence, not the first.
import pino from 'pino';
import { systemClock } from '../clock.ts';

export type Logger = pino.Logger;

/**
 * Lines go to standard output unless told: in the background, 15 KB or 100 ms at a time (a write for each line costs more
 * than the line), and completely before the process exits. A process whose standard output nobody reads ends.
 */
export function createLogger(options: {
  name: string;
  level: string;
  destination?: pino.DestinationStream | undefined;
}): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name },
      timestamp: createTimestamp(),
      // pino's own redaction costs twice what the rest of a request's line does (measured: 10 of 15 µs).
      formatters: { level: (label) => ({ level: label }), log: maskMembers },
      serializers: { err: describeError },
    },
    options.destination ?? openStandardOutput(),
  );
}

/**
 * Whoever read the log may go, as `head` does; pino then writes no more and says nothing. The process ends as it does
 * when its terminal is closed (`stopOnSignals`): nobody would know what it does, or why it runs.
 */
function openStandardOutput(): pino.DestinationStream {
  // As bytes: of text, it measures all that waits with each line anew, which copies it (8 KB of garbage a line).
  const output = pino.destination({ sync: false, minLength: 15_000, periodicFlush: 100, contentMode: 'buffer' });
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.kill(process.pid, 'SIGHUP');
  });
  // Its types know of text only.
  return { write: (line) => void output.write(Buffer.from(line) as unknown as string) };
}

/** ISO 8601 in UTC. Only milliseconds are written anew within a second: this is on the path of every request. */
function createTimestamp(): () => string {
  let second = -1;
  let begin = '';
  return () => {
    const now = systemClock().getTime();
    const milliseconds = now % 1_000;
    if (now - milliseconds !== second) {
      second = now - milliseconds;
      begin = `,"time":"${new Date(second).toISOString().slice(0, -4)}`;
    }
    return `${begin}${String(milliseconds).padStart(3, '0')}Z"`;
  };
}

const secretNames = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'secret',
  'client_secret',
  'clientSecret',
  'token',
  'access_token',
  'accessToken',
  'refresh_token',
  'refreshToken',
  'id_token',
  'idToken',
  'code',
  'address',
  'data',
]);
const mask = '[redacted]';

/** Masks members with a secret's name, at the top and one level below. Errors are the serializer's. */
function maskMembers(line: Record<string, unknown>): Record<string, unknown> {
  let masked: Record<string, unknown> | undefined;
  for (const name of Object.keys(line)) {
    const value = line[name];
    if (typeof value === 'object' && value !== null && !(value instanceof Error)) {
      if (Object.keys(value).some((key) => secretNames.has(key))) {
        masked ??= { ...line };
        masked[name] = maskNames(value);
      }
    } else if (secretNames.has(name)) {
      masked ??= { ...line };
      masked[name] = mask;
    }
  }
  return masked ?? line;
}

function maskNames(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, secretNames.has(key) ? mask : member]));
}

interface ErrorDescription {
  type: string;
  message: string;
  code?: unknown;
  stack?: string;
  cause?: ErrorDescription;
}

/** Causes deeper than this are not told; a chain may even be a circle. */
const deepestCause = 5;

/**
 * What of an error may be logged. Library errors carry whole requests, queries and parameters as properties; only name,
 * message, code, the stack's frames and the cause are taken. A message that quotes a value is replaced; addresses and
 * tokens in any other are masked.
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

/** Postgres quotes values in its messages, JSON.parse quotes the text, and a mail server quotes addresses. */
function quotesValue(error: Error): boolean {
  return ('severity' in error && 'routine' in error) || error instanceof SyntaxError || 'responseCode' in error;
}

const emailAddress = /[^\s"'<>:;,()]+@[^\s"'<>:;,()]+/g;
const bearerToken = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const queryPart = /\?[^\s"']+/g;

function maskText(text: string): string {
  return text.replace(bearerToken, mask).replace(queryPart, `?${mask}`).replace(emailAddress, mask);
}

/** Without its first lines, which repeat the message. */
function stackFrames(stack: string | undefined): string {
  return (stack ?? '')
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
