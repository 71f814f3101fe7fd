// Defines the configuration schema, role and event that the token handler registers at the platform. Registration runs
// in the background and does not delay the startup.
import type { Registered } from '../platform/registration.ts';
import { clientRegistered } from './clients/registration.ts';

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

export const clientFields = {
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
} as const;

/**
 * Returns a pattern that matches misspellings of `name`: one letter is missing, wrong or superfluous. The pattern does
 * not match `name` itself.
 */
function misspelt(name: string): string {
  const letters = [...name, ''];
  const variants = letters.map((letter, at) => {
    const [before, after] = [name.slice(0, at), name.slice(at)];
    return letter === '' ? `${before}.` : `${before}(?:.${after}|[^${letter}]?${after.slice(1)})`;
  });
  return `^(?:${variants.join('|')})$`;
}

/**
 * JSON Schema (draft-07) of a client's configuration entry. Sets no defaults, because the configuration service would
 * write them into the tenant's document. Allows unknown fields, because clients of the older platform have more fields.
 * Rejects only unknown fields that look like a misspelled known name.
 */
const clientSchema = {
  type: 'object',
  properties: clientFields,
  // Short names are not checked for misspellings, because too many valid names differ from them by only one letter.
  patternProperties: Object.fromEntries(
    Object.keys(clientFields)
      .filter((name) => name.length > 4)
      .map((name) => [misspelt(name), false]),
  ),
};

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
      description: 'Administrator of the token handler: registers clients, and lists and ends sessions.',
      inTenantAdmin: true,
    },
  ],
  events: [
    {
      name: clientRegistered,
      description: 'A client was registered at the identity provider.',
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
