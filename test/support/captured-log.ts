// A real logger whose lines a test can read.
import { createLogger, type Logger } from '../../src/service/operations/log.ts';

export interface CapturedLog {
  log: Logger;
  /** Everything logged so far. */
  text(): string;
  lines(): Record<string, unknown>[];
}

export function captureLog(level = 'debug'): CapturedLog {
  const written: string[] = [];
  const log = createLogger({ name: 'test', level, destination: { write: (line) => void written.push(line) } });
  return { log, text: () => written.join(''), lines: () => written.map((line) => JSON.parse(line)) };
}
