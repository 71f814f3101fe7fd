// `npm start`: runs all of Formgate on this machine until a signal comes. Exits with 1 if a component cannot continue.
import { UsageError } from '../src/service/operations/command-line.ts';
import { parseStartOptions } from './options.ts';
import { describeStart, startHelp } from './report.ts';
import { createFormgate } from './start.ts';
import { StoppedError } from './stop-stack.ts';

async function main(): Promise<void> {
  const options = parseStartOptions(process.argv.slice(2), process.env);
  if (options.help) return console.log(startHelp);
  const started = Date.now();
  const formgate = createFormgate(options, {
    done: (component) => console.log(`  ready  ${component.padEnd(28)}${((Date.now() - started) / 1000).toFixed(1)} s`),
    warn: (text) => console.warn(`  !      ${text}`),
  });
  const stop = async (reason: string, code: number) => {
    console.log(`\n${reason}Stopping…`);
    await formgate.stop();
    console.log('Stopped.');
    process.exit(code);
  };
  const exit = (reason: string, code = 0) => {
    // A second Ctrl-C exits without waiting for the stop.
    process.once('SIGINT', () => process.exit(130));
    stop(reason, code).catch(fail);
  };
  // If the terminal or pipe closes, nobody can read the output, so the first write error of stdout stops Formgate. All
  // other write errors are ignored.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  process.stdout.once('error', () => exit(''));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => exit(''));
  void formgate.failed.then((reason) => exit(`${reason} `, 1));

  console.log(`Starting Formgate with the data in ${options.directory}`);
  const { publicUrl } = await formgate.start();
  console.log(describeStart(publicUrl, options));
}

function fail(error: unknown): void {
  // StoppedError means that a stop was requested during the start. `stop` then ends the process.
  if (error instanceof StoppedError) return;
  console.error(
    error instanceof UsageError
      ? error.message
      : `Formgate cannot run: ${error instanceof Error ? error.message : error}`,
  );
  process.exit(1);
}

main().catch(fail);
