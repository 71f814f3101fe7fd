// Generates docs/routes.md from the route tables: every route with its guards, and what each guard checks.
import type { Route } from '../../src/service/http/http-app.ts';

export interface RoutedProcess {
  title: string;
  routes: Route[];
}

/** What each guard checks, keyed by the guard's name up to the first parenthesis. */
export const guardMeanings: Record<string, string> = {
  formCookie: 'The cookie with which this browser opened the form of the path. Otherwise 401.',
  openReadSession: 'A code was entered in this browser within the last 30 minutes. Otherwise 401.',
  ownForm: 'An HTML form does not come from a page of another origin. Otherwise 403.',
  ownPage:
    'The request comes from a page of this origin and, unless it is GET, has the header X-Formgate-Apply. Otherwise 403.',
  realmTenant: 'The tenant whose realm is in the path. Otherwise 404.',
  anonymous: 'Anyone may call.',
  bearer:
    'A valid bearer token of a tenant’s realm or of core, issued to this service. Otherwise 401. The configuration service takes tokens for any audience, as its contract demands.',
  role: 'The caller has at least one of the roles. Otherwise 403.',
  roleOr401: 'Like `role`, but 401, as the contract of the notification service demands.',
  tenant: 'The tenant of the call: the token’s, or for a core caller the one that `tenantId` names.',
  tenantOrAll: 'Like `tenant`, but a core caller may leave `tenantId` out to call for all tenants.',
  tenantOrCore: 'Like `tenant`, but a core caller may leave `tenantId` out to call for core’s configuration.',
  ifBearer:
    'The guards before “else” if the request has an Authorization header; otherwise those after it. Routes of sessions ignore an Authorization header with another scheme than `Bearer`.',
  mayUpdateData: 'The caller may change the data of this form. Runs before the body is read.',
  listAudit: 'Refuses nothing. Notes the audit event of an administrator’s list.',
  mayList:
    'The caller has form-admin and is no intake application, or asks for their own forms without form data. Otherwise 403.',
  varyByCaller: 'Adds `Vary: Accept, Authorization` to the response.',
  senderTenant:
    'Stores the tenant of the sender, for the log line and the limits of large bodies: a core caller names it in the query. Refuses nobody.',
  namedTenant: 'The tenant that `tenantId` names. Otherwise 401.',
  readBudget: 'The budget of reads of the tenant’s configuration is not used up. Otherwise 503 with Retry-After.',
  anonymousRead: 'The configuration’s definition has `anonymousRead`. Otherwise 401.',
  nameOrRealm: 'The query has `name` or `realm`. Otherwise 401.',
  notEmbedded:
    'The request is not for content that a page of another site embeds, such as an image, a frame or a script (Fetch Metadata). Requests with one of our cookies or a bearer token pass. Otherwise 403.',
  notPrefetched: 'The browser does not load the link in advance, before the person follows it. Otherwise 403.',
  addressLimit: 'A rate limit per client address. Over the limit 429.',
  rateLimit: 'A rate limit per session, person or process. Over the limit 429.',
  logoutTokenLimits:
    'Rate limits of logout tokens: invalid ones per client address, valid ones per tenant and client address. Over a limit 429. Reads the body, which contains the token.',
  browserSession: 'Reads the session cookie. 503 if the session store cannot be reached.',
  liveSession: 'A live session of the cookie. Otherwise 401.',
  roomForSave: 'The forms of the tenant may occupy more of the database (decision 0089).',
  seenSession: 'A live session of the cookie, which this request does not extend. Otherwise 401.',
  cookieScheme: 'https, if the name of the session cookie begins with `__Host-` or `__Secure-`. Otherwise 400.',
  sessionTenant:
    'The session belongs to the tenant that the proxy’s tenant header names, if it names one. Otherwise 401.',
  csrf: 'The request comes from the session’s own site, proven by `X-XSRF-TOKEN` except on GET. Otherwise 403.',
};

const introduction = `# Routes

Every route of every process, and the guards that each request passes, in this order. Guards run before the body is read.
What a caller may do with one form, register or session is decided after them, by the policy of its folder. \`urn:example\`
stands for \`URN_PREFIX\`.

A GET route also takes HEAD, and responds with the headers of GET. HEAD changes nothing: where GET has effects, which the
table shows as "no HEAD", HEAD gets 405.

Each process also serves \`/livez\`, \`/readyz\` and \`/metrics\` on its metrics port, without guards.

This page is written by \`npm run docs\` from the route tables; a test fails if it differs.`;

/** Returns the text of docs/routes.md for `processes`. */
export function routesReference(processes: readonly RoutedProcess[]): string {
  const sections = processes.map(({ title, routes }) => `## ${title}\n\n${routeTable(routes)}`);
  return `${[introduction, `## Guards\n\n${guardTable()}`, ...sections].join('\n\n')}\n`;
}

/** Returns the names, without parameters, of all guards in a route table, including guards within `ifBearer`. */
export function guardNames(routes: readonly Route[]): string[] {
  const names = routes
    .flatMap(({ guards }) => guards)
    .flatMap(({ name }) => withoutParameters(name).split(/[(;,]|else/));
  return [...new Set(names.map((name) => name.replace(')', '').trim()))].filter((name) => name !== '');
}

/** Returns `ifBearer(bearer, role; else x)` for `ifBearer(bearer, role(a, b); else x)`. */
function withoutParameters(name: string): string {
  return name.replaceAll(/(?<!ifBearer)\([^()]*\)/g, '');
}

function routeTable(routes: readonly Route[]): string {
  const rows = routes.map(({ method, path, getHasEffects, guards }) => {
    const shown = method === 'all' ? 'any' : `${method.toUpperCase()}${getHasEffects ? ', no HEAD' : ''}`;
    return `| ${shown} | \`${path}\` | ${guards.map(({ name }) => `\`${name}\``).join(', ')} |`;
  });
  return ['| method | path | guards |', '| --- | --- | --- |', ...rows].join('\n');
}

function guardTable(): string {
  const rows = Object.entries(guardMeanings).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`);
  return ['| guard | what it checks |', '| --- | --- |', ...rows].join('\n');
}
