// Starts and ends recordings in a process that has loaded recorder.ts.
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Recording {
  /** Environment variables for the process that is recorded. */
  env: Record<string, string>;
  start(): Promise<void>;
  /**
   * Ends the recording. Returns the sorted paths, relative to the repository, of the modules that ran functions since
   * `start`.
   */
  take(): Promise<string[]>;
  /** Removes the socket that an ended process left behind. */
  discard(): void;
}

export function createRecording(): Recording {
  const path = join(tmpdir(), `trace-${randomUUID()}.sock`);
  const send = async (command: string) => {
    for (let attempt = 0; ; attempt += 1)
      try {
        const socket = createConnection(path);
        socket.write(command);
        return JSON.parse(await text(socket)) as string[];
      } catch (error) {
        // Retry, because the process may still be starting and not yet listening on the socket.
        if (attempt === 100) throw error;
        await sleep(50);
      }
  };
  return {
    env: { NODE_OPTIONS: `--import=${import.meta.resolve('./recorder.ts')}`, TRACE_SOCKET: path },
    start: async () => void (await send('start')),
    take: () => send('take'),
    discard: () => rmSync(path, { force: true }),
  };
}
