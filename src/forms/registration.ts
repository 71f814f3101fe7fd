// What the form service brings to the platform: the shape of form definitions, its roles, its events and the type of
// its notices. It is written in the background at startup and blocks nothing.
import type { Registered } from '../platform/registration.ts';
import { notificationType, notificationTypeId } from './notices/notification-type.ts';
import { eventTypes } from './outbox/event-schema.ts';

const texts = { type: 'array', items: { type: 'string' } };
const duration = { type: 'string', pattern: '^P(?=.)(\\d+W)?(\\d+D)?(T(?=.)(\\d+H)?(\\d+M)?(\\d+(\\.\\d+)?S)?)?$' };

/**
 * A form definition (draft-07). It sets no defaults, because the configuration service would write them into what a
 * tenant stored: whoever reads a definition fills in what is missing, so that only id and name are required. It allows
 * unknown fields, because definitions of the older platform have more.
 */
export const definitionSchema = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: { type: 'string', pattern: '^[a-zA-Z0-9-_ ]{1,50}$' },
    name: { type: 'string', minLength: 1 },
    description: { type: ['string', 'null'] },
    anonymousApply: { type: 'boolean' },
    applicantRoles: texts,
    assessorRoles: texts,
    clerkRoles: texts,
    oneFormPerApplicant: { type: 'boolean' },
    dataSchema: { type: 'object' },
    uiSchema: { type: 'object' },
    formDraftUrlTemplate: { type: ['string', 'null'], pattern: '^https?://' },
    includeDataInSubmission: { type: 'boolean' },
    retention: {
      type: 'object',
      properties: { warnBefore: duration, lockAfter: duration, deleteAfter: duration },
    },
  },
} as const;

/** Form definitions have two homes: one property for each in a single document, or a document for each. */
export const registered: Registered = {
  definitions: {
    'platform:form-service': {
      configurationSchema: { type: 'object', additionalProperties: definitionSchema },
      description: 'Form definitions, one property for each, named by the id of the definition.',
    },
    'form-service': {
      configurationSchema: definitionSchema,
      description: 'A form definition, under its id as the name.',
    },
  },
  roles: [
    {
      role: 'form-admin',
      description: 'Administrator of forms: queries, unlocks, archives and deletes forms, and manages data registers.',
      inTenantAdmin: true,
    },
    {
      role: 'intake-application',
      description: 'For service accounts: creates, reads, updates and submits forms of applicants without an account.',
      inTenantAdmin: false,
    },
  ],
  events: eventTypes.map(({ name, description, payloadSchema }) => ({ name, description, payloadSchema })),
  notificationTypes: { [notificationTypeId]: { ...notificationType } },
};
