// Notification types define which events cause notices, through which channels, and with which templates. The types are
// stored in the configuration platform:notification-service. A tenant may override templates of core types and add its
// own types.
import { z } from 'zod';
import { jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { CodePiece } from '../written-code.ts';

const templateSchema = z.object({
  subject: z.string().default(''),
  title: z.string().nullish(),
  subtitle: z.string().nullish(),
  body: z.string().default(''),
});

/**
 * Maximum number of channels of a type, and of channels for which an event has templates. Each event and each delivery
 * reads all of them.
 */
const mostChannels = 10;
/** Maximum number of roles of a type, and their maximum length. */
const mostRoles = 100;
const longestRole = 200;

const eventSchema = z.object({
  namespace: z.string(),
  name: z.string(),
  templates: z
    .preprocess((given) => (isObject(given) ? usableTemplates(given) : given), z.record(z.string(), templateSchema))
    .default({}),
});

/** Ignores further texts in documents that were stored before the limit existed. */
const texts = (most: number) =>
  z.preprocess((given) => (Array.isArray(given) ? given.slice(0, most) : given), z.array(z.string())).default([]);

/**
 * Ignores further templates and invalid ones, in documents that were stored before the schema refused them. An invalid
 * template must not disable the others of its type.
 */
function usableTemplates(given: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(given).slice(0, mostChannels);
  const usable = names.filter((name) => templateSchema.safeParse(given[name]).success);
  return Object.fromEntries(usable.map((name) => [name, given[name]]));
}

const typeSchema = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullish(),
  publicSubscribe: z.boolean().default(false),
  subscriberRoles: texts(mostRoles),
  channels: texts(mostChannels),
  events: z.array(eventSchema).default([]),
});

/** The configuration that contains a tenant's notification types and sender. */
export const notificationsHome = { namespace: 'platform', name: 'notification-service' };

export type Template = z.output<typeof templateSchema>;
export type NotificationType = z.output<typeof typeSchema>;

/** Matches the keys of the configuration that do not name notification types. */
const notTypes = /^(email|contact)/;

/** Returns the core notification types and the tenant's notification types, keyed by id. Ignores invalid entries. */
export function notificationTypes(documents: { core: unknown; tenant: unknown }): Map<string, NotificationType> {
  const types = new Map(readTypes(documents.core));
  for (const [id, own] of readTypes(documents.tenant)) {
    const core = types.get(id);
    types.set(id, core ? overrideTemplates(core, own) : own);
  }
  return types;
}

function* readTypes(document: unknown): Generator<[string, NotificationType]> {
  for (const [id, entry] of Object.entries(isObject(document) ? document : {})) {
    const parsed = notTypes.test(id) ? undefined : typeSchema.safeParse(entry);
    if (parsed?.success) yield [id, { ...parsed.data, id }];
  }
}

function overrideTemplates(core: NotificationType, own: NotificationType): NotificationType {
  const events = core.events.map((event) => {
    const override = own.events.find(({ namespace, name }) => namespace === event.namespace && name === event.name);
    return override ? { ...event, templates: { ...event.templates, ...override.templates } } : event;
  });
  return { ...core, events };
}

/**
 * Returns the notification types that contain templates for an event. The notification service's own events never cause
 * notices.
 */
export function typesOfEvent(
  types: Map<string, NotificationType>,
  namespace: string,
  name: string,
): NotificationType[] {
  if (namespace === 'notification-service') return [];
  return [...types.values()].filter((type) => templatesOf(type, namespace, name) !== undefined);
}

export function templatesOf(
  type: NotificationType,
  namespace: string,
  name: string,
): Record<string, Template> | undefined {
  return type.events.find((event) => event.namespace === namespace && event.name === name)?.templates;
}

/**
 * Returns the template code in platform:notification-service. Each part of a template, such as its subject, is one
 * piece.
 */
export function* templatesIn(document: unknown): Generator<CodePiece> {
  for (const [id, type] of readTypes(document))
    for (const [index, event] of type.events.entries())
      for (const [channel, template] of Object.entries(event.templates))
        for (const [part, source] of Object.entries(template)) {
          const pointer = jsonPointer([id, 'events', index, 'templates', channel, part]);
          if (typeof source === 'string') yield { kind: 'template', pointer, source };
        }
}

const senderSchema = z.object({ email: z.object({ fromEmail: z.email() }) });

/** Returns the sender address that a tenant has chosen for its mail. */
export function senderOf(tenantDocument: unknown): string | undefined {
  return senderSchema.safeParse(tenantDocument).data?.email.fromEmail;
}

/** Describes what `templateSchema` accepts. */
const storedTemplate = {
  type: 'object',
  properties: {
    subject: { type: 'string' },
    title: { type: ['string', 'null'] },
    subtitle: { type: ['string', 'null'] },
    body: { type: 'string' },
  },
};

/** The schema of platform:notification-service. */
export const notificationTypesSchema = {
  type: 'object',
  properties: {
    contact: { type: ['object', 'null'] },
    email: { type: ['object', 'null'], properties: { fromEmail: { type: ['string', 'null'] } } },
  },
  // The number of notification types is limited, because each event and each delivery reads all of them.
  maxProperties: 200,
  patternProperties: {
    '^(?!email|contact)': {
      type: 'object',
      properties: {
        id: { type: 'string', pattern: '^(?!email|contact)[a-zA-Z0-9-_ ]{1,50}$' },
        name: { type: 'string' },
        description: { type: ['string', 'null'] },
        publicSubscribe: { type: 'boolean', default: false },
        subscriberRoles: {
          type: 'array',
          maxItems: mostRoles,
          items: { type: 'string', maxLength: longestRole },
          default: [],
        },
        channels: { type: 'array', maxItems: mostChannels, items: { type: 'string' }, default: [] },
        events: {
          type: 'array',
          maxItems: 100,
          items: {
            type: 'object',
            properties: {
              namespace: { type: 'string' },
              name: { type: 'string' },
              templates: { type: 'object', maxProperties: mostChannels, additionalProperties: storedTemplate },
            },
            required: ['namespace', 'name', 'templates'],
          },
        },
      },
      required: ['id', 'name', 'events'],
    },
  },
};
