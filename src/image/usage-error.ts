// Parses the arguments of the image's commands, and reports invalid arguments.

/** Thrown if the arguments are invalid. The message is printed in one line, without a stack; the exit code is 2. */
export class UsageError extends Error {}

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
