// Defines events, and finds the payload schema of an event in the event definitions.
import { jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { CodePiece } from '../written-code.ts';

export interface NewEvent {
  /** The tenant's id, which is the last segment of its URN. */
  tenant: string;
  namespace: string;
  name: string;
  occurred: Date;
  correlationId?: string | undefined;
  context: Record<string, unknown>;
  payload: Record<string, unknown>;
}

/** The members of a stored event that routing needs. */
export interface EventHead extends Pick<NewEvent, 'tenant' | 'namespace' | 'name'> {
  sequence: string;
  correlationId: string | null;
}

/** The subscriber up to which an event is routed. The notification types of an event are routed one after another. */
export interface RoutingPosition {
  typeId: string;
  subscriberId: string;
}

export interface UnroutedEvent extends EventHead {
  /** Null if the routing has not begun, or has not reached the end of a page. */
  routedTo: RoutingPosition | null;
}

/** `context` and `payload` are JSON texts, because they may be large. Only worker processes parse them. */
export interface StoredEvent extends EventHead, Pick<NewEvent, 'occurred'> {
  id: string;
  context: string;
  payload: string;
}

/** Returns the key by which a repeated event is recognised. Undefined if the sender gave none. */
export function idempotencyKey(context: Record<string, unknown>): string | undefined {
  const key = context.idempotencyKey;
  return typeof key === 'string' && key !== '' ? key : undefined;
}

const definitionSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 50 },
    description: { type: ['string', 'null'] },
    payloadSchema: { type: ['object', 'boolean'] },
    interval: { type: ['object', 'null'] },
    log: { type: ['object', 'null'] },
  },
  required: ['name', 'payloadSchema'],
  additionalProperties: false,
};

/** The configuration that contains the event definitions. */
export const eventsHome = { namespace: 'platform', name: 'event-service' };

/** The schema of platform:event-service: the event definitions of each namespace. */
export const eventDefinitionsSchema = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 50 },
      definitions: { type: 'object', additionalProperties: definitionSchema },
    },
    required: ['name', 'definitions'],
    additionalProperties: false,
  },
};

/**
 * Returns the path to the payload schema of an event in platform:event-service. The core entry of a namespace replaces
 * the tenant's entry for the whole namespace.
 */
export function payloadSchemaPath(namespace: string, name: string): [string, ...string[]] {
  return [namespace, 'definitions', name, 'payloadSchema'];
}

/** Returns the payload schemas in platform:event-service. */
export function* schemasOfEvents(document: unknown): Generator<CodePiece> {
  for (const [namespace, entry] of membersOf(document))
    for (const [name, definition] of membersOf(isObject(entry) ? entry.definitions : undefined)) {
      const schema = isObject(definition) ? definition.payloadSchema : undefined;
      const pointer = jsonPointer([namespace, 'definitions', name, 'payloadSchema']);
      if (schema !== undefined) yield { kind: 'schema', pointer, source: JSON.stringify(schema) };
    }
}

const membersOf = (value: unknown) => Object.entries(isObject(value) ? value : {});
