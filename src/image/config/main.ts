// The command `config`. It checks the configuration of processes without starting them.

import { UsageError } from '../usage-error.ts';
import { type CheckCommand, help, parseCheckArguments } from './arguments.ts';
import { checkConfiguration } from './check.ts';
import { exitCodeOf, printJson, printText } from './finding.ts';

function readArguments(): CheckCommand | undefined {
  try {
    return parseCheckArguments(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
}

const command = readArguments();
if (command) {
  const reports = await checkConfiguration({ ...command, env: process.env });
  process.exitCode = exitCodeOf(reports);
  const text = command.json ? printJson(reports) : printText(reports);
  // Connections that do not close in time must not delay the result.
  process.stdout.write(`${text}\n`, () => process.exit());
} else {
  process.stdout.write(`${help}\n`);
}
