// A real logger whose lines a test can read.
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createLogger, type Logger } from '../../src/service/operations/log.ts';

export interface CapturedLog {
  log: Logger;
  /** Returns everything that was logged so far. */
  text(): string;
  lines(): Record<string, unknown>[];
}

let notice = (_line: string): void => undefined;

/**
 * Sets the listener of this process. The listener gets each line of every captured log, and each line passed to
 * `noticeOutput`.
 */
export function onLogLine(listen: (line: string) => void): void {
  notice = listen;
}

/** Passes other output of a process to the listener: a line of its metrics, or a span that it has exported. */
export function noticeOutput(line: string): void {
  notice(line);
}

/** Passes each line of a stream, such as the output of a process that a test has started, to the listener. */
export function noticeStream(stream: Readable): void {
  createInterface({ input: stream }).on('line', (line) => notice(line));
}

/** Passes each line of a file to the listener. */
export async function noticeFile(path: string): Promise<void> {
  for await (const line of createInterface({ input: createReadStream(path) })) notice(line);
}

/** Passes each line of the logs in a folder to the listener. */
export async function noticeLogs(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (name.endsWith('.log')) await noticeFile(join(folder, name));
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
