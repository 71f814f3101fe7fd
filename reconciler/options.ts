// What `npm run reconcile` is told by its arguments.
import { parseArgs } from 'node:util';

export interface RunArguments {
  /** Leaves the other part out. */
  only: 'expire' | 'clients' | undefined;
  dryRun: boolean;
  allowPrune: boolean;
  help: boolean;
}

/** A mistake of whoever typed the command: told in one line, without a stack. */
export class UsageError extends Error {}

export const help = `One pass: warns of, locks and deletes drafts that nobody opens, removes what has no use any more, and brings the core
clients in line with their resources. A run that finds another one at work does nothing.

Usage: npm run reconcile [-- --dry-run] [-- --only expire|clients] [-- --allow-prune] [-- --help]

  --dry-run              say what would change, and change nothing
  --only expire|clients  do one part only
  --allow-prune          let more than half of the owned core clients, or all of them, be removed at once
  --help                 print this

Exit code 0, also when another run is at work or this one was asked to stop; 1 when something that the run needs failed;
2 for arguments that are none. The environment is described in docs/configuration.md.`;

/** Throws UsageError. */
export function parseRunArguments(args: string[]): RunArguments {
  const { only, ...flags } = parse(args);
  if (only !== undefined && only !== 'expire' && only !== 'clients')
    throw new UsageError(`--only is expire or clients, not ${JSON.stringify(only)}. See --help.`);
  return {
    only,
    dryRun: flags['dry-run'] ?? false,
    allowPrune: flags['allow-prune'] ?? false,
    help: flags.help ?? false,
  };
}

function parse(args: string[]) {
  const flag = { type: 'boolean' } as const;
  const options = { only: { type: 'string' }, 'dry-run': flag, 'allow-prune': flag, help: flag } as const;
  try {
    return parseArgs({ args, options, strict: true }).values;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message.split('.')[0] : 'Bad arguments'}. See --help.`);
  }
}
