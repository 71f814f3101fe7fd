// The dependencies of the routes of registers.
import type { Urns } from '../../service/urn.ts';
import type { RegisterChanges } from './changes.ts';
import type { EntryEdits } from './entry-edits.ts';
import type { RegisterGuards } from './policy.ts';
import type { RegisterReferences } from './references.ts';
import type { RegisterStore } from './store.ts';

export interface RegisterRoutesOptions extends RegisterGuards {
  store: RegisterStore;
  changes: RegisterChanges;
  edits: EntryEdits;
  references: RegisterReferences;
  urns: Urns;
}
