// The schema of form definitions, the roles, the events and the notification type that the form service registers at
// the platform. The platform client registers them in the background after startup.
import type { Registered } from '../platform/registration.ts';
import { notificationType, notificationTypeId } from './notices/notification-type.ts';
import { events, eventTypesOf } from './outbox/event-catalogue.ts';

const texts = { type: 'array', items: { type: 'string' } };
const duration = { type: 'string', pattern: '^P(?=.)(\\d+W)?(\\d+D)?(T(?=.)(\\d+H)?(\\d+M)?(\\d+(\\.\\d+)?S)?)?$' };

const date = { type: ['string', 'null'], format: 'date-time' };
const intakeWindow = { type: 'object', properties: { opens: date, closes: date } };

/**
 * The schema of a form definition (draft-07). It contains no defaults, because the configuration service would write
 * them into the tenant's configuration. Instead, Formgate adds defaults when it reads a definition, so only id and name
 * are required. Unknown fields are allowed, because definitions from the older platform have additional fields.
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
    intake: { anyOf: [{ type: 'null' }, intakeWindow, { type: 'array', minItems: 1, items: intakeWindow }] },
    retention: {
      type: 'object',
      properties: { warnBefore: duration, lockAfter: duration, deleteAfter: duration },
    },
  },
} as const;

/**
 * Everything that the form service registers. A tenant may store form definitions as properties of a single document,
 * or each in its own document (decision 0016).
 */
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
