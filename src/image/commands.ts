// The commands of the image, and the file that each of them runs.
import { join } from 'node:path';

const project = join(import.meta.dirname, '../..');

const commands: Record<string, { main: string; does: string }> = {
  forms: { main: 'src/forms/main.ts', does: 'the form service' },
  'token-handler': { main: 'src/token-handler/main.ts', does: 'the token handler' },
  'platform-server': { main: 'src/platform-server/main.ts', does: 'the platform’s services, where a cluster has none' },
  reconcile: { main: 'reconciler/main.ts', does: 'one pass over drafts and core clients, then exit' },
  migrate: { main: 'src/image/migrate/main.ts', does: 'migrate forms|token-handler|platform-server, then exit' },
  quarantine: { main: 'src/image/quarantine/main.ts', does: 'list or release quarantined items, then exit' },
};

/** Path of the file that a command runs; undefined for a name that is none. */
export function findCommand(name: string): string | undefined {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  return command && join(project, command.main);
}

/** What to say to whoever named no command, or one that is none. */
export function usage(name: string): string {
  const known = Object.entries(commands).map(([command, { does }]) => `  ${command.padEnd(16)} ${does}`);
  return [name === '' ? 'Name a command:' : `There is no command ${JSON.stringify(name)}:`, ...known].join('\n');
}
