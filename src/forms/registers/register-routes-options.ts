// What the routes of registers share: their options, and the context of their calls to the configuration service.
import type { Response } from 'express';
import { tenantOf } from '../../service/http/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import type { RegisterChanges } from './changes.ts';
import type { RegisterGuards } from './policy.ts';
import type { RegisterReferences } from './references.ts';
import type { RegisterStore } from './store.ts';

export interface RegisterRoutesOptions extends RegisterGuards {
  store: RegisterStore;
  changes: RegisterChanges;
  references: RegisterReferences;
  urns: Urns;
}

/** The tenant and the trace of a request. */
export function callContextOf(response: Response) {
  return { tenantId: tenantOf(response).id, traceparent: response.locals.traceparent };
}
