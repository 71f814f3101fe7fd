// The command-line arguments of `npm run reconcile`.
import { parseCommandLine, UsageError } from '../src/service/operations/command-line.ts';

export interface RunArguments {
  /** The only step to perform: `expire` (drafts) or `clients` (core clients). Undefined for both steps. */
  only: 'expire' | 'clients' | undefined;
  dryRun: boolean;
  allowPrune: boolean;
  acceptQuarantine: boolean;
  help: boolean;
}

export const help = `Performs one run: sends warnings about unused drafts, locks and deletes them, purges outdated rows, and syncs core
clients with their resources. Does nothing while another run is active.

Usage: npm run reconcile -- [--dry-run] [--only expire|clients] [--allow-prune] [--accept-quarantine] [--help]

  --dry-run              log what would change, and change nothing
  --only expire|clients  perform only this step
  --allow-prune          allow the removal of more than half of the owned core clients in one run
  --accept-quarantine    exit with 0 instead of 3, for a Job, which treats every other code as a failure
  --help                 print this

Exit codes: 0 success, also if another run is active or this one was stopped; 1 a service or the database failed;
2 invalid arguments; 3 items were quarantined by this run or since the previous one, and everything else was done.
\`npm run quarantine -- list\` shows them. docs/configuration.md describes the environment.`;

/** Parses the arguments of a run. Throws UsageError if they are invalid. */
export function parseRunArguments(args: string[]): RunArguments {
  const { only, ...flags } = parse(args);
  if (only !== undefined && only !== 'expire' && only !== 'clients')
    throw new UsageError(`--only must be expire or clients, not ${JSON.stringify(only)}. See --help.`);
  return {
    only,
    dryRun: flags['dry-run'] ?? false,
    allowPrune: flags['allow-prune'] ?? false,
    acceptQuarantine: flags['accept-quarantine'] ?? false,
    help: flags.help ?? false,
  };
}

function parse(args: string[]) {
  const flag = { type: 'boolean' } as const;
  const options = {
    only: { type: 'string' },
    'dry-run': flag,
    'allow-prune': flag,
    'accept-quarantine': flag,
    help: flag,
  } as const;
  return parseCommandLine({ args, options }).values;
}
