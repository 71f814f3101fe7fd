// The arguments of `npm run reconcile`.
import { parseArgs } from 'node:util';

export interface RunArguments {
  /** Skips the other step. */
  only: 'expire' | 'clients' | undefined;
  dryRun: boolean;
  allowPrune: boolean;
  acceptQuarantine: boolean;
  help: boolean;
}

/** Invalid arguments: printed as one line, without a stack trace. */
export class UsageError extends Error {}

export const help = `One pass: warns of, locks and deletes drafts that nobody opens, removes what has no use any more, and brings the core
clients in line with their resources. A run that finds another one at work does nothing.

Usage: npm run reconcile [-- --dry-run] [-- --only expire|clients] [-- --allow-prune]
       [-- --accept-quarantine] [-- --help]

  --dry-run              say what would change, and change nothing
  --only expire|clients  do one part only
  --allow-prune          let more than half of the owned core clients, or all of them, be removed at once
  --accept-quarantine    exit with 0 in place of 3, for a Job, which counts no other exit code as success
  --help                 print this

Exit code 0, also when another run is at work or this one was asked to stop; 1 when something that the run needs failed;
2 for invalid arguments; 3 when items were put into quarantine, by this run or since the one before: \`npm run quarantine --
list\` shows them. Everything else was done. The environment is described in docs/configuration.md.`;

/** Throws UsageError. */
export function parseRunArguments(args: string[]): RunArguments {
  const { only, ...flags } = parse(args);
  if (only !== undefined && only !== 'expire' && only !== 'clients')
    throw new UsageError(`--only is expire or clients, not ${JSON.stringify(only)}. See --help.`);
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
  try {
    return parseArgs({ args, options, strict: true }).values;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message.split('.')[0] : 'Bad arguments'}. See --help.`);
  }
}
