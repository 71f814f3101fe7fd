// The command `quarantine`. It lists and releases quarantined items in the database of one service.
import { runDatabaseCommand } from '../database-command.ts';
import { help, parseQuarantineArguments } from './arguments.ts';
import { runQuarantine } from './quarantine.ts';

await runDatabaseCommand({
  name: 'quarantine',
  help,
  parse: parseQuarantineArguments,
  dataActions: ['list'],
  run: runQuarantine,
});
