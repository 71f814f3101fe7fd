// The entry point of the reconciler. Performs one run, prints its summary, and exits with its exit code.
import { readArguments } from '../src/service/operations/command-line.ts';
import { parseSettings } from '../src/service/operations/config.ts';
import { createLogger } from '../src/service/operations/log.ts';
import { runMain } from '../src/service/operations/run-main.ts';
import { warnOfVariables } from '../src/service/operations/variable-warnings.ts';
import { startTracing } from '../src/service/tracing/start-tracing.ts';
import { runIn, startRoot } from '../src/service/tracing/tracing.ts';
import { settings } from './config.ts';
import { help, parseRunArguments } from './options.ts';
import { reconcile } from './start.ts';
import { exitCodeOf, summarise } from './summary.ts';

const name = 'reconciler';

await runMain(name, async (takeSignals) => {
  const args = readArguments(parseRunArguments);
  if (args.help) return console.log(help);
  const config = parseSettings(settings);
  const isTerminal = process.stdout.isTTY && process.stderr.isTTY;
  // On a terminal, the progress and the summary replace log messages below the level `warn`.
  const log = createLogger({ name, level: isTerminal && !process.env.LOG_LEVEL ? 'warn' : config.LOG_LEVEL });
  warnOfVariables(settings, process.env, log);
  const stop = new AbortController();
  // A terminal that is closed sends SIGHUP.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
  takeSignals();
  const tracing = await startTracing(name, config, log);
  const terminal = isTerminal ? (text: string) => void process.stderr.write(text) : undefined;
  const options = { config, arguments: args, log, env: process.env, signal: stop.signal, terminal };
  const result = await runIn(startRoot({ name: 'reconcile', kind: 'internal' }), () => reconcile(options));
  await tracing?.close();
  if (isTerminal) console.log(summarise(result));
  else log.info(result, summarise(result));
  process.exit(exitCodeOf(result, args));
});
