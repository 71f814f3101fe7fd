// The state of the form service, as its API reports it.
import { type ApiRequest, path } from '../api/request.ts';

type Time = string | null;

export interface Run {
  started: string;
  finished: Time;
  outcome: 'succeeded' | 'failed' | 'stopped';
  expirySucceeded: boolean | null;
  clientsSucceeded: boolean | null;
  counts: Record<string, unknown> | null;
}

export interface Operations {
  asOf: string;
  scope: 'tenant' | 'all';
  reconciler: { lastSuccess: { expire: Time; clients: Time }; runs: Run[] };
  coreClients: Record<string, number> | null;
  /** `drafts` is null if `scope` is `all`. `deletions` is null if no run has counted them. */
  overdue: { drafts: Count | null; oldest: Time; deletions: Count | null };
  quarantine: Count & { released: number };
  outbox: Count & { oldest: Time };
  /** null if `scope` is `all`. */
  storage: { bytes: number; limit: number; measured: Time } | null;
  limits: { pod: string; since: string; refused: Refused[] };
}

/** Counting stops at a limit. If the limit is reached, `count` is only a lower bound. */
export interface Count {
  count: number;
  isMinimum: boolean;
}

interface Refused {
  method: string;
  route: string;
  status: number;
  count: number;
  last: string;
}

export interface QuarantinedItem {
  id: string;
  kind: string;
  formId: string | null;
  definitionId: string | null;
  reason: string;
  detail: string;
  firstSeen: string;
  lastTried: string;
  attempts: number;
  released: boolean;
}

const target = 'form-service' as const;

export const operationsRequest: ApiRequest = { target, path: '/form/v1/operations' };

export const quarantineRequest = (after: string): ApiRequest => ({
  target,
  path: '/form/v1/quarantine',
  query: { top: 25, after },
});

export const releaseRequest = (id: string): ApiRequest => ({
  target,
  path: path`/form/v1/quarantine/${id}`,
  method: 'POST',
  json: { operation: 'release' },
});
