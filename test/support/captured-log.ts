// A real logger whose lines a test can read.
import { createLogger, type Logger } from '../../src/service/operations/log.ts';

export interface CapturedLog {
  log: Logger;
  /** Everything logged so far. */
  text(): string;
  lines(): Record<string, unknown>[];
}

let notice = (_line: string): void => undefined;

/** Sets the function that gets each line of every captured log of this process, and what `noticeOutput` gets. */
export function onLogLine(listen: (line: string) => void): void {
  notice = listen;
}

/** Passes other output of a process to that function: a line of its metrics, or a span that it has exported. */
export function noticeOutput(line: string): void {
  notice(line);
}

export function captureLog(level = 'debug'): CapturedLog {
  const written: string[] = [];
  const write = (line: string) => {
    written.push(line);
    notice(line);
  };
  const log = createLogger({ name: 'test', level, destination: { write } });
  return { log, text: () => written.join(''), lines: () => written.map((line) => JSON.parse(line)) };
}
