// Converts a CoreClient resource into its entry in the core configuration, by the rules of the token handler. All
// functions are pure. Problems name fields and reasons, but never quote values.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type ClientEntry, clientIdSchema, upstreamUrn } from '../../src/service/clients/client-rules.ts';
import {
  allowedRedirectUris,
  type RedirectUriRules,
  redirectUriLimits,
  redirectUriSchema,
} from '../../src/service/clients/redirect-uri.ts';
import { canonicalJson } from '../../src/service/json-value.ts';
import type { CoreClientResource } from './resource.ts';

export interface CoreClientRules {
  urnPrefix: string;
  redirectUriRules: RedirectUriRules;
}

/** `clientId` is undefined if the resource has no valid client id. */
export type ParsedCoreClient =
  | { clientId: string; entry: ClientEntry; problems?: never }
  | { clientId: string | undefined; entry?: never; problems: string[] };

// Excludes the id __proto__, because JSON parsers drop or reject this key.
const id = clientIdSchema.refine((text) => text !== '__proto__', 'must be another name');

export type CoreClientParser = (resource: Pick<CoreClientResource, 'name' | 'spec'>) => ParsedCoreClient;

/**
 * Creates a parser that reuses its schema, because the creation of a schema costs more than parsing a thousand specs.
 */
export function createCoreClientParser(rules: CoreClientRules): CoreClientParser {
  const schema = specSchema(rules);
  return (resource) => parseCoreClient(resource, schema);
}

function parseCoreClient(
  resource: Pick<CoreClientResource, 'name' | 'spec'>,
  schema: ReturnType<typeof specSchema>,
): ParsedCoreClient {
  const clientId = clientIdOf(resource);
  const parsed = schema.safeParse(resource.spec);
  const problems = parsed.success ? [] : parsed.error.issues.map(describe);
  const idProblems = id.safeParse(clientId).error?.issues ?? [];
  problems.unshift(...idProblems.map(({ message }) => `clientId: ${message}`));
  if (!parsed.success || problems.length > 0)
    return { clientId: idProblems.length === 0 ? clientId : undefined, problems };
  const { description, redirectUris, targets, keycloakLogout } = parsed.data;
  const text = description === undefined ? {} : { description };
  const entry = { id: clientId, name: clientId, ...text, redirectUris, targets, keycloakLogout };
  return { clientId, entry };
}

const givenId = z.object({ clientId: z.string() });

/** Returns the client id from the spec or, if the spec has none, the resource's name. */
function clientIdOf({ name, spec }: Pick<CoreClientResource, 'name' | 'spec'>): string {
  const given = givenId.safeParse(spec);
  return given.success ? given.data.clientId : name;
}

function specSchema({ urnPrefix, redirectUriRules }: CoreClientRules) {
  const upstream = z.string().transform((text, context) => {
    const urn = upstreamUrn(text, urnPrefix);
    if (urn === undefined)
      context.addIssue(`must be a service's or an API's URN that begins with ${urnPrefix}, or a service's name`);
    return urn ?? '';
  });
  return z.object({
    clientId: z.string().optional(),
    description: z.string().optional(),
    redirectUris: z
      .array(redirectUriSchema(redirectUriRules))
      .default([])
      .transform((uris) => [...new Set(uris)])
      // The token handler would ignore the others, which only its log would tell.
      .refine((uris) => allowedRedirectUris(uris) === uris.length, `must be ${redirectUriLimits}`),
    targets: z
      .array(z.object({ id, upstream }))
      .default([])
      .refine(
        (targets) => new Set(targets.map((target) => target.id)).size === targets.length,
        'must have one id each',
      ),
    keycloakLogout: z.boolean().default(false),
  });
}

/** Formats a problem, such as `redirectUris[1]: must not have a fragment`. */
function describe({ path, message }: z.core.$ZodIssue): string {
  const place = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return `${place.replace(/^\./, '') || 'spec'}: ${message}`;
}

/** Returns the SHA-256 hash of an entry. The order of members does not affect the hash. */
export function hashEntry(entry: unknown): string {
  return createHash('sha256').update(canonicalJson(entry)).digest('hex');
}
