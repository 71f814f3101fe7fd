// How a row of the table becomes a form. Answers are not among the columns: they travel as text that nobody parses.
import type { FormStatus } from './catalogue.ts';
import type { Applicant, Form, Person } from './form.ts';

export interface FormRow {
  id: string;
  tenant_id: string;
  definition_id: string;
  status: FormStatus;
  created: Date;
  created_by: Person;
  created_by_issuer: string;
  anonymous_applicant: boolean;
  applicant: Applicant;
  subscriber_id: string | null;
  last_accessed: Date;
  locked: Date | null;
  submitted: Date | null;
  held: boolean;
  revision: string;
}

export const formColumns = `id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
  anonymous_applicant, applicant, subscriber_id, last_accessed, locked, submitted, held, revision`;

export function toForm(row: FormRow): Form {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    definitionId: row.definition_id,
    status: row.status,
    created: row.created,
    createdBy: row.created_by,
    issuer: row.created_by_issuer,
    anonymousApplicant: row.anonymous_applicant,
    applicant: row.applicant,
    subscriberId: row.subscriber_id,
    lastAccessed: row.last_accessed,
    locked: row.locked,
    submitted: row.submitted,
    held: row.held,
    revision: row.revision,
  };
}
