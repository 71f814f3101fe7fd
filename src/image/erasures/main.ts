// The command `erasures`. It exports the deletions of forms, and applies them after a restore.
import { createInterface } from 'node:readline';
import { runDatabaseCommand } from '../database-command.ts';
import { help, parseErasuresArguments } from './arguments.ts';
import { runErasures } from './erasures.ts';

/** Opens standard input only when the first line is read, because an open input would keep the process alive. */
async function* readLines(): AsyncGenerator<string> {
  yield* createInterface({ input: process.stdin });
}

await runDatabaseCommand({
  ...{ name: 'erasures', help, parse: parseErasuresArguments, dataActions: ['export'] },
  run: (command, surroundings) => runErasures(command, { ...surroundings, lines: readLines() }),
});
