// Implements the command `erasures` on the database of the form service, or on that of the platform server.
import type pg from 'pg';
import {
  type Erasure,
  eraseAgain,
  erasureSchema,
  listErasures,
  skipSequences,
  withoutRepetitions,
} from '../../forms/expiry/erasure-store.ts';
import { deleteApplicantsAgain } from '../../platform-server/notifications/erased-applicants.ts';
import { systemClock } from '../../service/clock.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import type { ErasuresCommand } from './arguments.ts';

const batchSize = 500;

/**
 * Runs the command, and returns its exit code. `lines` are the lines of the list that the actions `apply` and
 * `apply-platform` read.
 */
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
  const deletions = withoutRepetitions(list);
  const inBatches = async (work: (transaction: pg.PoolClient, batch: Erasure[]) => Promise<number>) => {
    let done = 0;
    for (let at = 0; at < deletions.length; at += batchSize)
      done += await withTransaction(pool, (transaction) => work(transaction, deletions.slice(at, at + batchSize)));
    return done;
  };
  if (command.action === 'apply-platform') {
    const applicants = await inBatches(deleteApplicantsAgain);
    print(`${deletions.length} deletions in the list; ${applicants} applicants deleted again.`);
    return 0;
  }
  await skipSequences(pool);
  const erased = await inBatches((transaction, batch) => eraseAgain(transaction, batch, systemClock()));
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
