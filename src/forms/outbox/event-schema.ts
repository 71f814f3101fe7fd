// JSON Schemas (draft-07) of every event payload, as they are registered at the event service, which refuses an event
// that does not match. They allow unknown properties, so that a newer pod may say more before the registration does.
import { formStatuses } from '../forms/catalogue.ts';
import type { EventKind } from './outbox.ts';

export interface JsonSchema {
  [keyword: string]: unknown;
}

export interface EventType {
  name: EventKind;
  description: string;
  payloadSchema: JsonSchema;
}

const optionalDateTime = { type: ['string', 'null'], format: 'date-time' };
const optionalText = { type: ['string', 'null'] };

const actor = object({ id: { type: 'string' }, name: { type: 'string' } });

const definition = {
  ...object({
    id: { type: 'string' },
    name: { type: 'string' },
    description: optionalText,
  }),
  type: ['object', 'null'],
};

const link = object({ href: { type: 'string' } });

const form = object({
  urn: { type: 'string' },
  id: { type: 'string', format: 'uuid' },
  definition,
  formDraftUrl: optionalText,
  status: {
    type: 'string',
    enum: formStatuses,
  },
  created: optionalDateTime,
  createdBy: { ...actor, type: ['object', 'null'] },
  locked: optionalDateTime,
  submitted: optionalDateTime,
  lastAccessed: optionalDateTime,
  applicant: {
    ...object({ addressAs: { type: 'string' } }),
    type: ['object', 'null'],
  },
  dryRun: { type: 'boolean' },
  _links: object({ self: link, data: link, collection: link }),
});

function object(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

/** Every event that the form service sends. */
export const eventTypes: readonly EventType[] = [
  {
    name: 'form-created',
    description: 'A draft form was created.',
    payloadSchema: object({ form, createdBy: actor }),
  },
  {
    name: 'form-submitted',
    description: 'A form was submitted. Holds the answers only where the form definition says so.',
    payloadSchema: object({
      form,
      submission: { type: ['object', 'null'] },
      submittedBy: actor,
      data: { type: ['object', 'null'] },
      dryRun: { type: 'boolean' },
    }),
  },
  {
    name: 'form-expiring',
    description: 'A draft form that has not been opened for some time will soon be locked.',
    payloadSchema: object({
      form,
      lockOn: optionalDateTime,
      deleteOn: optionalDateTime,
    }),
  },
  {
    name: 'form-locked',
    description: 'A draft form was locked because it was not opened for too long. It will be deleted later.',
    payloadSchema: object({
      form,
      lockedBy: actor,
      deleteOn: optionalDateTime,
    }),
  },
  {
    name: 'form-unlocked',
    description: 'A locked form was made a draft again by an administrator.',
    payloadSchema: object({ form, unlockedBy: actor }),
  },
  {
    name: 'form-to-draft',
    description: 'A submitted form was given back to its applicant as a draft.',
    payloadSchema: object({ form, toDraftBy: actor }),
  },
  {
    name: 'form-archived',
    description: 'A submitted form was archived.',
    payloadSchema: object({
      id: { type: 'string', format: 'uuid' },
      archivedBy: actor,
    }),
  },
  {
    name: 'form-deleted',
    description: 'A form and the information of its applicant were deleted.',
    payloadSchema: object({
      urn: { type: 'string' },
      id: { type: 'string', format: 'uuid' },
      deletedBy: actor,
      definition,
      files: { type: 'array', items: { type: 'string' } },
    }),
  },
];
