// The command `config`. It checks the configuration of processes without starting them.

import { readArguments } from '../../service/operations/command-line.ts';
import { endOnSignals } from '../../service/operations/end-on-signals.ts';
import { help, parseCheckArguments } from './arguments.ts';
import { checkConfiguration } from './check.ts';
import { exitCodeOf, printJson, printText } from './finding.ts';

endOnSignals();
const command = readArguments(parseCheckArguments);
if (command) {
  const reports = await checkConfiguration({ ...command, env: process.env });
  process.exitCode = exitCodeOf(reports);
  const text = command.json ? printJson(reports) : printText(reports);
  // Exits explicitly, because open connections to dependencies would keep the process alive.
  process.stdout.write(`${text}\n`, () => process.exit());
} else {
  process.stdout.write(`${help}\n`);
}
