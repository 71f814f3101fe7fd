// How the database of forms is migrated: by the form service, by the reconciler and by the command `migrate`.
import { join } from 'node:path';

export const formMigrations = {
  directory: join(import.meta.dirname, '../migrations'),
  // A save waits no longer for a form that another transaction has locked: its connection is everybody's.
  lockTimeout: '1s',
};
