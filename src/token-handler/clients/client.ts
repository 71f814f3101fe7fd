// Defines a client, and parses it from its configuration entry. The problems of an invalid entry name fields and never
// quote values. Pure functions only.
import { z } from 'zod';
import { clientIdSchema, upstreamUrn } from '../../service/clients/client-rules.ts';
import {
  allowedRedirectUris,
  parseRedirectUri,
  type RedirectUriRules,
  redirectUriLimits,
} from '../../service/clients/redirect-uri.ts';
import { isObject } from '../../service/json-value.ts';
import { storable } from '../../service/storable-text.ts';

/** An upstream that a client may call through the token handler. In the path of a request, `id` names the target. */
export interface Target {
  id: string;
  /** URN of a service or an API. */
  upstream: string;
}

export interface Client {
  id: string;
  name: string;
  description?: string | undefined;
  redirectUris: string[];
  targets: Target[];
  keycloakLogout: boolean;
  /** Deprecated. If a sign-in request has no callbackUrl, the path of this URL is used as the callback path. */
  authCallbackUrl?: string | undefined;
  /** Scope names. The first is `openid`. */
  scope: string[];
  prompt?: string | undefined;
  idpHint?: string | undefined;
  /** Where the browser goes after a sign-in: a path on the frontend's origin, or an http(s) URL. */
  successRedirectUrl?: string | undefined;
  failureRedirectUrl?: string | undefined;
  core: boolean;
}

export interface ClientRules {
  urnPrefix: string;
  redirectUriRules: RedirectUriRules;
  core: boolean;
}

/** A rule that a configuration entry breaks. `field` has few distinct values, so it can be a label of a metric. */
export interface ClientProblem {
  field: string;
  detail: string;
}

export type ParsedClient =
  /** `leftOut` lists the reasons why redirect URIs of the entry are missing from `client`. */
  | { client: Client; unknownFields: string[]; leftOut: string[]; problems?: never }
  | { client?: never; unknownFields?: never; leftOut?: never; problems: ClientProblem[] };

/** Maximum length of a client's name, which is stored with each registration. A longer name is cut. */
const longestName = 200;
/** Maximum number of targets of a client. */
const mostTargets = 1_000;

const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);
const optionalText = optional(z.string());
/**
 * Maximum length of addresses and of all scopes together. They are part of the address to which a browser is sent.
 * Each session stores landing pages too.
 */
const longestAddress = 2_000;
const scopes = z
  .union([z.string().transform((text) => text.split(' ')), z.array(z.string())])
  .nullish()
  .transform((items) => [...new Set(['openid', ...(items ?? []).filter((item) => item !== '')])])
  .refine((items) => items.join(' ').length <= longestAddress, `must have at most ${longestAddress} characters`)
  // Accepts the characters that scope names may have (RFC 6749 section 3.3).
  .refine((items) => items.every((item) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(item)), 'must contain scope names only');

const landing = optional(
  z.string().max(longestAddress).refine(isLanding, 'must be a path, or an http or https URL without credentials'),
);

function clientSchema({ urnPrefix }: ClientRules) {
  return z.object({
    id: clientIdSchema.optional(),
    name: optional(
      z
        .string()
        .min(1)
        .transform((name) => storable(name, longestName)),
    ),
    description: optionalText,
    redirectUris: z
      .array(z.string())
      .nullish()
      .transform((uris) => uris ?? []),
    targets: targetsSchema(urnPrefix),
    keycloakLogout: z
      .boolean()
      .nullish()
      .transform((value) => value ?? false),
    authCallbackUrl: optional(
      z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).max(longestAddress),
    ),
    scope: scopes,
    prompt: optional(z.enum(['none', 'login', 'consent', 'select_account'])),
    idpHint: optional(z.string().max(200)),
    successRedirectUrl: landing,
    failureRedirectUrl: landing,
  });
}

/** Parses the configuration entry of a client. `key` is the key of the entry. */
export type ClientParser = (key: string, entry: unknown) => ParsedClient;

/**
 * Creates a parser. All calls of the parser use the same schema, because creating a schema takes half a millisecond,
 * and a tenant may write thousands of entries.
 */
export function createClientParser(rules: ClientRules): ClientParser {
  const schema = clientSchema(rules);
  return (key, entry) => parseClient(key, entry, rules, schema);
}

function parseClient(
  key: string,
  entry: unknown,
  rules: ClientRules,
  schema: ReturnType<typeof clientSchema>,
): ParsedClient {
  const [idProblem] = clientIdSchema.safeParse(key).error?.issues ?? [];
  if (idProblem) return { problems: [{ field: 'id', detail: idProblem.message }] };
  const parsed = schema.safeParse(entry);
  if (!parsed.success) return { problems: parsed.error.issues.map(describe) };
  if (parsed.data.id !== undefined && parsed.data.id !== key)
    return { problems: [{ field: 'id', detail: 'must equal the key of the entry' }] };
  const { redirectUris, leftOut } = usableRedirectUris(parsed.data.redirectUris, rules.redirectUriRules);
  const client = { ...parsed.data, id: key, redirectUris, name: parsed.data.name ?? key, core: rules.core };
  // Accepts unknown fields, because clients of the older platform have more fields. Reports them, because an unknown
  // field may be a misspelling of a known field.
  const unknownFields = Object.keys(entry as object).filter((field) => !(field in schema.shape));
  return { client, unknownFields: [...unknownFields, ...unknownTargetFields(entry as RawEntry)], leftOut };
}

/** A client's configuration entry that `clientSchema` accepts. */
interface RawEntry {
  targets?: object | null;
}

function unknownTargetFields({ targets }: RawEntry): string[] {
  return Object.entries(targets ?? {}).flatMap(([key, target]: [string, unknown]) =>
    Object.keys(isObject(target) ? target : {})
      .filter((field) => field !== 'id' && field !== 'upstream')
      .map((field) => `targets.${(target as Partial<Target>).id ?? key}.${field}`),
  );
}

/**
 * Leaves out invalid redirect URIs instead of rejecting the whole client. Redirect URIs are used only for a new
 * registration, and a client that was configured before a rule existed must stay usable.
 */
function usableRedirectUris(uris: readonly string[], rules: RedirectUriRules) {
  const allowed = allowedRedirectUris(uris);
  const parsed = uris.slice(0, allowed).map((uri) => parseRedirectUri(uri, rules));
  const leftOut = parsed.flatMap(({ problem }, index) =>
    problem === undefined ? [] : [`redirectUris[${index}]: ${problem}`],
  );
  if (uris.length > allowed) leftOut.push(`redirectUris[${allowed}] and later: a client has ${redirectUriLimits}`);
  return { redirectUris: [...new Set(parsed.flatMap(({ uri }) => uri ?? []))], leftOut };
}

function describe(issue: z.core.$ZodIssue): ClientProblem {
  const [field] = issue.path;
  return { field: typeof field === 'string' ? field : 'entry', detail: issue.message };
}

/**
 * Accepts an array of targets, or an object that is keyed by the ids of the targets. A target may be a string that
 * names the upstream. In an array, this string is also the id of the target.
 */
function targetsSchema(urnPrefix: string) {
  const upstream = z.string().transform((text, context) => {
    const urn = upstreamUrn(text, urnPrefix);
    if (urn === undefined)
      context.addIssue('must be the URN of a service or an API, or the name of a platform service');
    return urn ?? '';
  });
  const target = z.object({ id: clientIdSchema, upstream });
  const asTarget = (entry: unknown, targetId?: string): unknown => {
    if (typeof entry === 'string') return { id: targetId ?? entry, upstream: entry };
    return targetId !== undefined && isObject(entry) ? { id: targetId, ...entry } : entry;
  };
  return z
    .custom<unknown[] | Record<string, unknown>>(
      (value) => Array.isArray(value) || isObject(value),
      'must be an array or a map',
    )
    .refine((entries) => Object.keys(entries).length <= mostTargets, `must be at most ${mostTargets}`)
    .nullish()
    .transform((entries) => {
      if (Array.isArray(entries)) return entries.map((entry) => asTarget(entry));
      return Object.entries(entries ?? {}).map(([key, entry]) => asTarget(entry, key));
    })
    .pipe(z.array(target))
    .refine((targets) => new Set(targets.map((item) => item.id)).size === targets.length, 'must have different ids');
}

function isLanding(text: string): boolean {
  if (/[\s\p{Cc}\\]/u.test(text)) return false;
  // `//host` refers to another origin (RFC 3986 section 4.2).
  if (text.startsWith('/')) return !text.startsWith('//');
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}
