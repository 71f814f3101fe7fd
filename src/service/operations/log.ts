// Writes log lines as JSON. Callers must not pass a token, cookie, code, address or form data. Masking is only a second
// line of defence.
import pino from 'pino';
import { systemClock } from '../clock.ts';
import { describeError, mask } from './error-description.ts';
import { currentScope, type RequestScope, traceIdOf } from './request-scope.ts';

export type Logger = pino.Logger;

/**
 * Creates a logger that writes to standard output by default. The logger buffers up to 15 KB, or the lines of 100 ms,
 * and writes them in the background, because a write for each line would cost more than creating the line. Before the
 * process exits, the logger writes all buffered lines. The process ends if the reader of standard output closes the
 * stream. While the reader does not read, the logger keeps at most `longestBuffer` bytes and drops further lines.
 */
export function createLogger(options: {
  name: string;
  level: string;
  destination?: pino.DestinationStream | undefined;
}): Logger {
  const log: Logger = pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name },
      timestamp: createTimestamp(),
      mixin: currentIds,
      mixinMergeStrategy: addIds,
      // `maskMembers` replaces pino's own redaction, which would take 10 µs per line. All other work for the line of a
      // request takes 5 µs (measured).
      formatters: { level: (label) => ({ level: label }), log: maskMembers },
      serializers: { err: describeError },
    },
    options.destination ?? openStandardOutput((lines) => log.error({ lines }, 'log lines dropped')),
  );
  return log;
}

const noIds = {};
const currentIds = (): object => currentScope() ?? noIds;

/** Adds the ids of the current request to a line. Does not change a line that already names its request. */
function addIds(line: object, scope: Partial<RequestScope>): object {
  if (scope.traceparent === undefined || 'traceId' in line) return line;
  return { requestId: scope.requestId, traceId: traceIdOf(scope.traceparent), ...line };
}

/**
 * Maximum number of bytes that wait for the reader of standard output. If they had no limit, the process would run out
 * of memory while the reader does not read.
 */
const longestBuffer = 16 * 1_048_576;
let droppedLines = 0;

/** Returns the number of log lines that this process has dropped. */
export function countDroppedLines(): number {
  return droppedLines;
}

/**
 * Opens standard output. Stops the process when the reader of standard output closes the stream, as `head` does.
 * Otherwise, pino would silently stop writing. The process stops in the same way as when its terminal is closed
 * (`stopOnSignals`). Calls `onDropped` with the number of dropped lines when the reader has caught up.
 */
function openStandardOutput(onDropped: (lines: number) => void): pino.DestinationStream {
  // Passes bytes to pino. If pino got text, it would copy the whole buffer for each line to measure it, which leaves
  // 8 KB of garbage.
  const output = pino.destination({
    ...{ sync: false, minLength: 15_000, periodicFlush: 100, contentMode: 'buffer' },
    maxLength: longestBuffer,
  });
  let unreported = 0;
  output.on('drop', () => {
    droppedLines += 1;
    unreported += 1;
  });
  output.on('drain', () => {
    const lines = unreported;
    unreported = 0;
    if (lines > 0) onDropped(lines);
  });
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.kill(process.pid, 'SIGHUP');
  });
  // In this mode, pino expects bytes, but its types allow only text.
  return { write: (line) => void output.write(Buffer.from(line) as unknown as string) };
}

/**
 * Returns a function that formats the current time (ISO 8601 in UTC). It runs for every request, so it formats only the
 * milliseconds while the second stays the same.
 */
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

/** Masks members with the names of secrets, at the top level and one level below. `describeError` masks errors. */
function maskMembers(line: Record<string, unknown>): Record<string, unknown> {
  let masked: Record<string, unknown> | undefined;
  for (const name of Object.keys(line)) {
    const value = line[name];
    if (secretNames.has(name)) {
      masked ??= { ...line };
      masked[name] = mask;
    } else if (typeof value === 'object' && value !== null && !(value instanceof Error)) {
      if (Object.keys(value).some((key) => secretNames.has(key))) {
        masked ??= { ...line };
        masked[name] = maskNames(value);
      }
    }
  }
  return masked ?? line;
}

function maskNames(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, secretNames.has(key) ? mask : member]));
}
