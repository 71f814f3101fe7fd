// Options for migrating the form database, used by the form service, the reconciler and the command `migrate`.
import { programFile } from '../../service/program-files.ts';

export const formMigrations = {
  directory: programFile('src/forms/migrations'),
  // The migration sets this limit on the database role, so it applies to every statement. A save that waits for a
  // locked form therefore soon releases its connection, which all requests share.
  lockTimeout: '1s',
};
