// Parses the arguments of the command `erasures`.
import { parseCommandLine, UsageError } from '../../service/operations/command-line.ts';

export type ErasuresCommand = { action: 'export'; since: Date } | { action: 'apply' | 'apply-platform' | 'help' };

export const help = `Carries deletions of forms over a restore of a database, which DATABASE_URL selects: that of the form service or, for
apply-platform, that of the platform server.

Usage: npm run erasures -- export [--since TIME] > erasures.jsonl
       npm run erasures -- apply < erasures.jsonl
       npm run erasures -- apply-platform < erasures.jsonl

  export         print one JSON object for each deleted form: ids and times, no personal data
  --since TIME   only deletions from this time on, as 2026-11-23T10:00:00Z; by default those of the last 30 days, which
                 is all that the database keeps
  apply          delete the forms again that are in the list and in the database. Run it once after each restore, also
                 with an empty list, before the form service starts: it also keeps the keys of events unique
  apply-platform delete again the addresses of the applicants of the forms in the list, and their undelivered notices

apply and apply-platform migrate the database first, because the backup may be from an older version.

Exit code 0; 1 if the database cannot be used or migrated, a line is invalid, or Postgres rejects a deletion;
2 for invalid arguments.`;

/** Throws UsageError if the arguments are invalid. */
export function parseErasuresArguments(args: string[]): ErasuresCommand {
  const { values, positionals } = parse(args);
  const [action, ...rest] = positionals;
  if (values.help || action === undefined) return { action: 'help' };
  const since = new Date(values.since ?? 0);
  if (action === 'export' && rest.length === 0 && !Number.isNaN(since.getTime())) return { action, since };
  if ((action === 'apply' || action === 'apply-platform') && rest.length === 0 && values.since === undefined)
    return { action };
  throw new UsageError('expected: export [--since TIME], apply, or apply-platform. See --help.');
}

function parse(args: string[]) {
  const options = { since: { type: 'string' }, help: { type: 'boolean' } } as const;
  return parseCommandLine({ args, options, allowPositionals: true });
}
