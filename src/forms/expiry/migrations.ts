// Options for migrating the form database, used by the form service, the reconciler and the command `migrate`.
import { programFile } from '../../service/program-files.ts';

export const formMigrations = {
  directory: programFile('src/forms/migrations'),
  // The migration sets this limit on the database role, so it applies to every statement. A save that waits for
  // the lock on a form's row therefore fails after a second, and returns its connection to the pool of all requests.
  lockTimeout: '1s',
};
