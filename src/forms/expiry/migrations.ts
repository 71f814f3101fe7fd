// Options for migrating the form database, used by the form service, the reconciler and the command `migrate`.
import { join } from 'node:path';

export const formMigrations = {
  directory: join(import.meta.dirname, '../migrations'),
  // A statement waits at most 1 s for a lock. A save that waits for a locked form blocks a connection that all requests
  // share.
  lockTimeout: '1s',
};
