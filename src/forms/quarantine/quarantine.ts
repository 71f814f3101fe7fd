// The kinds of items that the form service's database keeps in quarantine. Pure.
import { outboxKinds } from '../outbox/outbox.ts';

/** Steps of the expiry that cannot be done to a form. The item is the form's id. */
export const expiryKinds = ['warn', 'lock', 'delete'] as const;

/** What the reconciler cannot write of a core client. The item is the client's id, or its resource's uid. */
export const coreClientKinds = ['core-client', 'core-client-status'] as const;

/** In order of a form's life. An item of the outbox is the sequence of its row. */
export const quarantineKinds: readonly string[] = [...expiryKinds, ...outboxKinds, ...coreClientKinds];
