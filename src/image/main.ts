// The entry point of the image: runs the command that the first argument names.
import { systemClock } from '../service/clock.ts';
import { describeError } from '../service/operations/error-description.ts';
import { programModule } from '../service/program-files.ts';

const commands: Record<string, { main: string; does: string }> = {
  forms: { main: 'src/forms/main.ts', does: 'the form service' },
  'token-handler': { main: 'src/token-handler/main.ts', does: 'the token handler' },
  'platform-server': {
    main: 'src/platform-server/main.ts',
    does: 'the platform’s services, for clusters that have none',
  },
  reconcile: { main: 'reconciler/main.ts', does: 'one run: draft expiry and core client sync, then exit' },
  migrate: { main: 'src/image/migrate/main.ts', does: 'migrate forms|token-handler|platform-server, then exit' },
  config: { main: 'src/image/config/main.ts', does: 'check the configuration of processes, then exit' },
  quarantine: { main: 'src/image/quarantine/main.ts', does: 'list or release quarantined items, then exit' },
  erasures: { main: 'src/image/erasures/main.ts', does: 'export deletions of forms, or repeat them, then exit' },
  'keycloak-setup': {
    main: 'src/image/keycloak-setup/main.ts',
    does: 'create what Formgate needs in Keycloak, then exit',
  },
};

const [node = '', , name = '', ...rest] = process.argv;
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (!command) {
  const heading = name === '' ? 'Name a command:' : `Unknown command ${JSON.stringify(name)}. Name one of these:`;
  const lines = Object.entries(commands).map(([known, { does }]) => `  ${known.padEnd(16)} ${does}`);
  process.stderr.write(`${[heading, ...lines].join('\n')}\n`);
  process.exit(2);
}
const main = programModule(command.main);
// Removes the command's name, so that the command reads its arguments as if it had been started directly.
process.argv = [node, main, ...rest];
try {
  await import(main);
} catch (error) {
  // If a module cannot be loaded, the logger may be unavailable too. This line therefore imitates the logger's format.
  const time = systemClock().toISOString();
  const line = { level: 'fatal', time, name, err: describeError(error), msg: 'cannot start' };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  process.exitCode = 1;
}
