// Parses the arguments of the command `quarantine`.

import { parseCommandLine, UsageError } from '../../service/operations/command-line.ts';
import type { ReleaseChoice } from '../../service/quarantine/quarantine-store.ts';

export type QuarantineCommand =
  | { action: 'list'; kind: string | undefined; json: boolean }
  | { action: 'release'; choice: ReleaseChoice }
  | { action: 'help' };

export const help = `Lists and releases quarantined items: forms, events, notices and others that cannot be processed because
of their content. DATABASE_URL selects the service: the form service, the token handler or the platform server.

Usage: npm run quarantine -- list [--kind KIND] [--json]
       npm run quarantine -- release ID|--all

  list             print the items, newest first
  --kind KIND      only items of a kind, such as lock, form-locked or delivery
  --json           print one JSON object in each line
  release ID       try an item again: forms and core clients in the next run of the reconciler,
                   everything else immediately
  release --all    try all items again

Exit code 0; 1 if the database cannot be read or the item does not exist; 2 for invalid arguments.`;

/** Throws UsageError if the arguments are invalid. */
export function parseQuarantineArguments(args: string[]): QuarantineCommand {
  const { values, positionals } = parse(args);
  const [action, ...ids] = positionals;
  if (values.help || action === undefined) return { action: 'help' };
  const { kind, json = false, all = false } = values;
  if (action === 'list' && ids.length === 0 && !all) return { action, kind, json };
  if (action === 'release' && kind === undefined && !json && all !== ids.length > 0) {
    const [id] = ids;
    if (id === undefined) return { action, choice: 'all' };
    if (ids.length === 1 && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return { action, choice: { id } };
  }
  throw new UsageError('expected: list [--kind KIND] [--json], or release ID, or release --all. See --help.');
}

function parse(args: string[]) {
  const flag = { type: 'boolean' } as const;
  const options = { kind: { type: 'string' }, json: flag, all: flag, help: flag } as const;
  return parseCommandLine({ args, options, allowPositionals: true });
}
