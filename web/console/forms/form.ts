// Forms as the form service describes them, and the requests of administrators.
import { type ApiRequest, path } from '../api/request.ts';

export const statuses = ['draft', 'locked', 'submitted', 'archived'] as const;
export type Status = (typeof statuses)[number];

export interface Person {
  id: string;
  name: string;
}

export interface Form {
  id: string;
  definitionId: string;
  status: string;
  created: string;
  createdBy: Person;
  lastAccessed: string;
  locked: string | null;
  lockOn: string | null;
  deleteOn: string | null;
  submitted: string | null;
  held: boolean;
  hold?: { reason: string | null; by: Person } | null;
  anonymousApplicant: boolean;
  applicant: { addressAs?: string; channels?: { channel: string; address: string }[] };
}

export interface FormPage {
  results: Form[];
  page: { next: string | null; size: number; total?: number; totalIsMinimum?: boolean; searchIncomplete?: boolean };
}

export interface DefinitionList {
  results: DefinitionName[];
  /** True if there are more definitions than the listed ones. */
  truncated: boolean;
}

export interface DefinitionName {
  id: string;
  name: string;
  anonymousApply: boolean;
  source: 'collection' | 'document';
}

/** Returns the name of a definition; its id, if `list` is not loaded yet or lacks the definition. */
export function nameOf(id: string, list: DefinitionList | undefined): string {
  return list?.results.find((definition) => definition.id === id)?.name || id;
}

const forms = 'form-service' as const;

export const definitionsRequest: ApiRequest = { target: forms, path: '/form/v1/definitions' };

export function definitionRequest(id: string): ApiRequest {
  return { target: forms, path: path`/form/v1/definitions/${id}` };
}

export function formRequest(id: string): ApiRequest {
  return { target: forms, path: path`/form/v1/forms/${id}` };
}

export function dataRequest(id: string): ApiRequest {
  return { target: forms, path: path`/form/v1/forms/${id}/data` };
}

export function historyRequest(id: string): ApiRequest {
  return { target: forms, path: path`/form/v1/forms/${id}/history` };
}

export type Operation = 'unlock' | 'archive' | 'to-draft' | 'hold' | 'release';

export function operationRequest(id: string, operation: Operation, reason?: string): ApiRequest {
  const json = { operation, ...(reason !== undefined && { reason }) };
  return { ...formRequest(id), method: 'POST', json };
}

export const deleteRequest = (id: string): ApiRequest => ({ ...formRequest(id), method: 'DELETE' });

/** Compares without regard to case: the form service writes `Draft`, and `wanted` is in lower case. */
export function isIn({ status }: Form, ...wanted: Status[]): boolean {
  return wanted.some((name) => name === status.toLowerCase());
}
