// The texts that `npm start` prints: the help, and the addresses and accounts when Formgate is ready.
import { relative } from 'node:path';
import { demoCommand, type StartOptions } from './options.ts';

export const startHelp = `Starts all of Formgate on this machine: Postgres, an identity provider, a mailbox, the platform server,
the form service and the token handler, behind one port of 127.0.0.1. Ctrl-C stops everything.

Usage: npm start [-- --fresh] [-- --help]

  --fresh   delete all data first
  --help    print this

Environment:
  PORT            port to listen on (8080)
  FORMGATE_DATA   folder of the data (.formgate in the project)
  URN_PREFIX      prefix of service ids and roles (urn:example)
  REDIS_URL       Redis for the sessions, such as redis://127.0.0.1:6379 (in memory)
  LOG_LEVEL       log level of the services (info)`;

/** Returns the text with the addresses, the accounts and the next steps to try. */
export function describeStart(publicUrl: string, { directory }: StartOptions): string {
  const logs = relative(process.cwd(), `${directory}/logs`) || directory;
  return `
Formgate is ready.

${table([
  ['Start page', publicUrl],
  ['API of the form service', `${publicUrl}/docs`],
  ['API of the token handler', `${publicUrl}/token-handler/docs`],
  ['Mailbox', `${publicUrl}/mailbox`],
  ['Form service', `${publicUrl}/form/v1`],
  ['Token handler', `${publicUrl}/token-handler`],
  ['Identity provider', `${publicUrl}/auth/realms/demo`],
])}

${table([
  ['Who', 'Name', 'Password or secret', 'May'],
  ['person', 'alice@example.com', 'alice', 'apply'],
  ['person', 'admin@example.com', 'admin', 'administer everything'],
  ['service account', 'demo-intake', 'demo-intake-secret', 'draft for people without an account'],
  ['service account', 'demo-admin', 'demo-admin-secret', 'administer by script'],
  ['registration token', 'demo-registration-token', '', 'register clients'],
])}

Try this in another terminal:  ${demoCommand(publicUrl)}
Logs are in ${logs}. Ctrl-C stops everything.`;
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd((widths[column] ?? 0) + 3)).join('')}`.trimEnd())
    .join('\n');
}
