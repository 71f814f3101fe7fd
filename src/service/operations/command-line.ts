// Parses the arguments of commands, and reports invalid arguments.
import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Thrown if the arguments are invalid. The message is printed in one line, without a stack; the exit code is 2. */
export class UsageError extends Error {}

/** Like `parseArgs` of Node, but throws UsageError for an unknown option or a missing value. */
export function parseCommandLine<const C extends ParseArgsConfig>(config: C): ReturnType<typeof parseArgs<C>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message.split('.')[0] : 'Bad arguments'}. See --help.`);
  }
}

/** Parses the arguments of this process. Prints a UsageError in one line, and exits with 2. */
export function readArguments<C>(parse: (args: string[]) => C): C {
  try {
    return parse(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
}
