// What the token handler brings to the platform: the shape of client configuration, its role and its event. It is written
// in the background at startup and blocks nothing.
import type { Registered } from '../platform/registration.ts';
import { clientRegistered } from './clients/registrar.ts';

const idPattern = '^[a-zA-Z0-9-_ ]{1,50}$';
const text = { type: ['string', 'null'] };
const texts = { type: ['array', 'null'], items: { type: 'string' } };
const target = {
  anyOf: [
    { type: 'string', minLength: 1 },
    {
      type: 'object',
      required: ['upstream'],
      properties: { id: { type: 'string', pattern: idPattern }, upstream: { type: 'string', minLength: 1 } },
    },
  ],
};

/**
 * A client (draft-07). It sets no defaults, because the configuration service would write them into what a tenant
 * stored, and allows unknown fields, because clients of the older platform have more.
 */
const clientSchema = {
  type: 'object',
  properties: {
    id: { type: 'string', pattern: idPattern },
    name: text,
    description: text,
    redirectUris: { type: ['array', 'null'], items: { type: 'string', pattern: '^https?://[^#]*$' } },
    targets: {
      anyOf: [
        { type: 'null' },
        { type: 'array', items: target },
        { type: 'object', propertyNames: { pattern: idPattern }, additionalProperties: target },
      ],
    },
    keycloakLogout: { type: ['boolean', 'null'] },
    authCallbackUrl: text,
    scope: { anyOf: [text, texts] },
    prompt: { anyOf: [{ type: 'null' }, { enum: ['none', 'login', 'consent', 'select_account'] }] },
    idpHint: text,
    successRedirectUrl: text,
    failureRedirectUrl: text,
  },
} as const;

const id = { type: 'string' };

export const registered: Registered = {
  definitions: {
    'platform:token-handler': {
      configurationSchema: {
        type: 'object',
        properties: {
          clients: { type: 'object', propertyNames: { pattern: idPattern }, additionalProperties: clientSchema },
        },
        propertyNames: { pattern: idPattern },
        additionalProperties: clientSchema,
      },
      description: 'Clients of the token handler, by id.',
    },
  },
  roles: [
    {
      role: 'token-handler-admin',
      description: 'Administrator of the token handler: registers clients and sees and ends sessions.',
      inTenantAdmin: true,
    },
  ],
  events: [
    {
      name: clientRegistered,
      description: 'A client was registered at the access service.',
      payloadSchema: {
        type: 'object',
        required: ['client', 'registeredBy'],
        properties: {
          client: {
            type: 'object',
            required: ['id', 'name', 'clientId'],
            properties: { id, name: id, clientId: id, authCallbackUrl: id },
          },
          registeredBy: { type: 'object', required: ['id', 'name'], properties: { id, name: id } },
        },
      },
    },
  ],
};
