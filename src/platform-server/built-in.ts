// The configurations that this process itself reads: their schemas, the code in them, and the limits of their length.
import { definitionsSchema, schemasOfDefinitions } from './configuration/definition.ts';
import { eventDefinitionsSchema, schemasOfEvents } from './events/event.ts';
import { notificationTypesSchema, templatesIn } from './notifications/notification-type.ts';

/**
 * Maximum length of a tenant's notification types and of its event definitions, in characters. Each change makes every
 * process read them again.
 */
const longestOfTenant = 1_048_576;

/** The schemas of the configurations that this process itself reads. No other definition can replace them. */
export const builtIn = {
  'platform:configuration-service': { schema: definitionsSchema, findCode: schemasOfDefinitions },
  'platform:event-service': { schema: eventDefinitionsSchema, findCode: schemasOfEvents, longest: longestOfTenant },
  'platform:notification-service': {
    schema: notificationTypesSchema,
    findCode: templatesIn,
    longest: longestOfTenant,
  },
};
