// Generates the OpenAPI 3.1 document from the route table and its schemas, and serves it as JSON and as a page.
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { anonymous, type ResponseDescription, type Route, route } from '../http/http-app.ts';
import { sendShared } from '../http/request-context.ts';
import { docsPage, docsPolicy, type ShownDocument } from './docs-page.ts';
import { headerParameters } from './header-parameters.ts';
import { bodyTypeOf, credentialsOf, impliedResponses } from './implied-responses.ts';
import { operationIdOf } from './operation-id.ts';
import { problemMembers } from './problem-members.ts';
import { problemTypeRoute } from './problem-page.ts';
import { tryPage } from './try-page.ts';
import { tryRoutes } from './try-routes.ts';

export interface OpenApiOptions {
  title: string;
  version: string;
  description: string;
  routes: Route[];
}

export interface DocumentRoutesOptions extends OpenApiOptions {
  /** File path of the script of `/docs/try`. Without a script, the service has no page `/docs/try`. */
  tryScript?: string | undefined;
}

type Document = ReturnType<typeof createDocument>;

// RFC 9457 section 3.2: clients must ignore members that they do not know.
const problemSchema = z
  .looseObject({
    type: z.string().meta({ examples: ['urn:formgate:problem:invalid-request'] }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    errors: z.array(z.looseObject({ pointer: z.string(), detail: z.string() })).optional(),
    ...problemMembers,
    errorMessage: z.string().meta({ description: 'The same as detail, for clients of the older platform' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details' });

export function createOpenApi(options: OpenApiOptions): Document {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of options.routes) {
    const path = route.path.replace(/[:*](\w+)/g, '{$1}');
    const methods = route.method === 'all' ? anyMethod : [route.method];
    const operations = Object.fromEntries(
      methods.map((method) => [method, { operationId: operationId(route, method, path), ...operation(route, method) }]),
    );
    paths[path] = { ...paths[path], ...operations };
  }
  return createDocument({
    openapi: '3.1.0',
    info: { title: options.title, version: options.version, description: options.description },
    servers: [{ url: '/' }],
    paths,
    components: { securitySchemes: usedSchemes(options.routes) },
  });
}

const anyMethod = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;

/**
 * Returns the operationId. A route with the method `all` has one operation for each method. Its operationIds end with
 * the method.
 */
function operationId({ operationId: own, method }: Route, verb: string, path: string): string {
  if (own === undefined) return operationIdOf(verb, path);
  return method === 'all' ? `${own}${verb[0]?.toUpperCase()}${verb.slice(1)}` : own;
}

function operation(route: Route, method: string): ZodOpenApiOperationObject {
  const header = headerParameters(route, method);
  const body = route.body ?? route.streamedBody;
  return {
    summary: route.summary,
    ...(route.tag && { tags: [route.tag] }),
    ...(route.description && { description: route.description }),
    ...security(route),
    requestParams: {
      ...(isZodObject(route.params) && { path: route.params }),
      ...(isZodObject(route.query) && { query: route.query }),
      ...(header && { header }),
    },
    ...(body && { requestBody: { required: true, content: { [bodyTypeOf(route)]: { schema: body } } } }),
    responses: Object.fromEntries(
      Object.entries({ ...impliedResponses(route), ...route.responses }).map(([status, described]) => [
        status,
        response(Number(status), described),
      ]),
    ),
  };
}

const schemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
  session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'The session cookie that sign-in sets' },
  form: {
    type: 'apiKey',
    in: 'cookie',
    name: 'formgate-form-{formId}',
    description: 'The cookie of a form that this browser created, or for which it entered a code; `__Host-…` by https',
  },
} as const;

function usedSchemes(routes: Route[]) {
  const used = new Set<string>(routes.flatMap(credentialsOf));
  return Object.fromEntries(Object.entries(schemes).filter(([name]) => used.has(name)));
}

/**
 * Returns the security requirements of a route. A call must meet one of them. An empty requirement accepts a call
 * without credentials.
 */
function security(route: Route): Pick<ZodOpenApiOperationObject, 'security'> {
  const credentials = credentialsOf(route);
  if (credentials.every((credential) => credential === 'none')) return {};
  return { security: credentials.map((credential) => (credential === 'none' ? {} : { [credential]: [] })) };
}

function isZodObject(schema: z.ZodType | undefined): schema is z.ZodObject {
  return schema instanceof z.ZodObject;
}

function response(status: number, described: ResponseDescription) {
  const { textType } = described;
  const schema = described.schema ?? (status >= 400 && !textType ? problemSchema : undefined);
  const type = schema === problemSchema ? 'application/problem+json' : 'application/json';
  const headers = Object.entries(described.headers ?? {}).map(([name, description]) => [
    name,
    z.string().meta({ description }),
  ]);
  return {
    description: described.description,
    ...(headers.length > 0 && { headers: z.object(Object.fromEntries(headers)) }),
    ...((schema ?? textType) && {
      content: { ...(schema && { [type]: { schema } }), ...(textType && { [textType]: { schema: z.string() } }) },
    }),
  };
}

/**
 * Serves the document at `/openapi.json` and at the older platform's `/swagger/docs/v1`, a page at `/docs`, and the
 * problem types at `/problems/<slug>`. The document is created at the first request, so that the process starts faster.
 */
export function documentRoutes(options: DocumentRoutesOptions): Route[] {
  const { tryScript } = options;
  let made: Texts | undefined;
  const texts = () => {
    made ??= textsOf(createOpenApi(options), tryScript !== undefined);
    return made;
  };
  const documentAt = (path: string) =>
    route({
      method: 'get',
      path,
      summary: 'The OpenAPI document',
      guards: [anonymous],
      responses: { 200: { description: 'OpenAPI 3.1' } },
      handle(_input, _request, response) {
        sendShared(response.set('Cache-Control', 'max-age=300'), 'application/json', texts().json);
      },
    });
  return [
    documentAt('/openapi.json'),
    documentAt('/swagger/docs/v1'),
    route({
      method: 'get',
      path: '/docs',
      summary: 'The OpenAPI document as a page',
      guards: [anonymous],
      responses: { 200: { description: 'HTML' } },
      handle(_input, _request, response) {
        response.set({ 'Content-Security-Policy': docsPolicy, 'Referrer-Policy': 'no-referrer' });
        sendShared(response.set('Cache-Control', 'max-age=300'), 'text/html', texts().page);
      },
    }),
    problemTypeRoute(),
    ...(tryScript === undefined ? [] : tryRoutes(tryScript, () => texts().tryPage)),
  ];
}

interface Texts {
  json: Buffer;
  page: Buffer;
  tryPage: Buffer;
}

function textsOf(document: Document, canTry: boolean): Texts {
  const json = JSON.stringify(document);
  const shown = JSON.parse(json) as ShownDocument;
  return {
    json: Buffer.from(json),
    page: Buffer.from(docsPage(shown, canTry)),
    tryPage: Buffer.from(canTry ? tryPage(shown) : ''),
  };
}
