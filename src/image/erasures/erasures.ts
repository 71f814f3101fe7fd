// Implements the command `erasures` on the database of the form service.
import type pg from 'pg';
import {
  type Erasure,
  eraseAgain,
  erasureSchema,
  listErasures,
  skipSequences,
  withoutRepetitions,
} from '../../forms/expiry/erasure-store.ts';
import { systemClock } from '../../service/clock.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import type { ErasuresCommand } from './arguments.ts';

const batchSize = 500;

/** Runs the command, and returns its exit code. `lines` are the lines of the list that the action `apply` reads. */
export async function runErasures(
  command: Exclude<ErasuresCommand, { action: 'help' }>,
  { pool, print, lines }: { pool: pg.Pool; print(line: string): void; lines: AsyncIterable<string> },
): Promise<0 | 1> {
  if (command.action === 'export') {
    for await (const erasure of listErasures(pool, command.since)) print(JSON.stringify(erasure));
    return 0;
  }
  // Reads all lines before it changes the database, because an invalid line may mean that the list was cut off.
  const list: Erasure[] = [];
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === '') continue;
    const erasure = parseLine(line);
    if (!erasure) {
      print(`Line ${number} is not one of "erasures export". Nothing was changed.`);
      return 1;
    }
    list.push(erasure);
  }
  await skipSequences(pool);
  let erased = 0;
  const deletions = withoutRepetitions(list);
  for (let at = 0; at < deletions.length; at += batchSize) {
    const batch = deletions.slice(at, at + batchSize);
    erased += await withTransaction(pool, (transaction) => eraseAgain(transaction, batch, systemClock()));
  }
  print(`${deletions.length} deletions in the list; ${erased} forms deleted again.`);
  return 0;
}

function parseLine(line: string): Erasure | undefined {
  try {
    return erasureSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}
