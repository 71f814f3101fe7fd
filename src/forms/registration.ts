// What the form service registers at the platform: the schema of form definitions, its roles, its events and its
// notification type. The platform client registers it in the background at startup.
import type { Registered } from '../platform/registration.ts';
import { notificationType, notificationTypeId } from './notices/notification-type.ts';
import { events, eventTypesOf } from './outbox/event-catalogue.ts';

const texts = { type: 'array', items: { type: 'string' } };
const duration = { type: 'string', pattern: '^P(?=.)(\\d+W)?(\\d+D)?(T(?=.)(\\d+H)?(\\d+M)?(\\d+(\\.\\d+)?S)?)?$' };

/**
 * A form definition (draft-07). It sets no defaults, because the configuration service would write them into the tenant's
 * configuration; readers fill in missing members, so only id and name are required. It allows unknown fields, because
 * definitions of the older platform have more.
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

/** Form definitions may be stored as properties of a single document, or as one document each (decision 0016). */
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
  events: eventTypesOf(events),
  notificationTypes: { [notificationTypeId]: { ...notificationType } },
};
