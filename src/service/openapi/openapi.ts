// The OpenAPI 3.1 document, made from the route table and the schemas that validate requests, and the pages that show it.
import { Router } from 'express';
import { z } from 'zod';
import type { createDocument, ZodOpenApiOperationObject, ZodOpenApiPathsObject } from 'zod-openapi';
import type { Answer, Credential, Route } from '../http/http-app.ts';
import { zodOpenapi } from '../operations/late-packages.ts';
import { docsPage, docsPolicy, type ShownDocument } from './docs-page.ts';
import { sendProblemType } from './problem-page.ts';

export interface OpenApiOptions {
  title: string;
  version: string;
  description: string;
  routes: Route[];
}

type Document = ReturnType<typeof createDocument>;

const problemSchema = z
  .object({
    type: z.string().meta({ examples: ['urn:formgate:problem:invalid-request'] }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
    errorMessage: z.string().meta({ description: 'The same as detail, for clients of the older platform' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details' });

export function createOpenApi(options: OpenApiOptions): Document {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of options.routes) {
    const path = route.path.replace(/[:*](\w+)/g, '{$1}');
    const methods = route.method === 'all' ? anyMethod : [route.method];
    const operations = Object.fromEntries(methods.map((method) => [method, operation(route)]));
    paths[path] = { ...paths[path], ...operations };
  }
  return zodOpenapi().createDocument({
    openapi: '3.1.0',
    info: { title: options.title, version: options.version, description: options.description },
    paths,
    components: { securitySchemes: usedSchemes(options.routes) },
  });
}

const anyMethod = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;

function operation(route: Route): ZodOpenApiOperationObject {
  const headers = Object.entries(route.headers ?? {}).map(([name, description]) => [
    name,
    z.string().optional().meta({ description }),
  ]);
  return {
    summary: route.summary,
    ...(route.description && { description: route.description }),
    ...security(route),
    requestParams: {
      ...(isObject(route.params) && { path: route.params }),
      ...(isObject(route.query) && { query: route.query }),
      ...(headers.length > 0 && { header: z.object(Object.fromEntries(headers)) }),
    },
    ...(route.body && { requestBody: { required: true, content: { 'application/json': { schema: route.body } } } }),
    responses: {
      ...Object.fromEntries(
        Object.entries({ ...impliedAnswers(route), ...route.answers }).map(([status, answer]) => [
          status,
          response(Number(status), answer),
        ]),
      ),
      ...(route.raw === undefined && { default: response(500, { description: 'Any other failure' }) }),
    },
  };
}

/** What every route of its kind may answer, so that no route has to say it: a route's own words come before these. */
function impliedAnswers(route: Route): Record<number, Answer> {
  const { raw, params, query, body } = route;
  if (raw) return {};
  const credentials = credentialsOf(route);
  return {
    ...((params ?? query ?? body) && { 400: { description: 'The request is not valid: `errors` name every place' } }),
    ...(credentials.length > 0 &&
      !credentials.includes('none') && {
        401: {
          description: 'The caller is not authenticated',
          ...(credentials.includes('bearer') && { headers: { 'WWW-Authenticate': 'What is wrong with the bearer' } }),
        },
      }),
    ...(body && {
      413: { description: 'The body is too large' },
      415: { description: 'The body is not sent as application/json' },
    }),
  };
}

const schemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
  session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'The session cookie that sign-in sets' },
} as const;

function credentialsOf({ guards }: Route): readonly Credential[] {
  return [...new Set(guards.flatMap(({ admits = [] }) => admits))];
}

function usedSchemes(routes: Route[]): Partial<typeof schemes> {
  const used = new Set(routes.flatMap(credentialsOf));
  return {
    ...(used.has('bearer') && { bearer: schemes.bearer }),
    ...(used.has('session') && { session: schemes.session }),
  };
}

/** Any one of the requirements is enough; an empty one says that a call without a credential is taken as well. */
function security(route: Route): Pick<ZodOpenApiOperationObject, 'security'> {
  const credentials = credentialsOf(route);
  if (credentials.every((credential) => credential === 'none')) return {};
  return { security: credentials.map((credential) => (credential === 'none' ? {} : { [credential]: [] })) };
}

function isObject(schema: z.ZodType | undefined): schema is z.ZodObject {
  return schema instanceof z.ZodObject;
}

function response(status: number, answer: Answer) {
  const schema = answer.schema ?? (status >= 400 ? problemSchema : undefined);
  const type = status >= 400 ? 'application/problem+json' : 'application/json';
  const headers = Object.entries(answer.headers ?? {}).map(([name, description]) => [
    name,
    z.string().meta({ description }),
  ]);
  return {
    description: answer.description,
    ...(headers.length > 0 && { headers: z.object(Object.fromEntries(headers)) }),
    ...(schema && { content: { [type]: { schema } } }),
  };
}

/**
 * Serves the OpenAPI document at `/openapi.json` and at the older platform's `/swagger/docs/v1`, the API page at `/docs`
 * and the problem types at `/problems/<slug>`. `make` is called once, at the first request, so it does not delay the start.
 */
export function documentRoutes(make: () => Document): Router {
  const router = Router();
  let made: { json: string; page: string } | undefined;
  const texts = () => {
    made ??= textsOf(make());
    return made;
  };
  router.get(['/openapi.json', '/swagger/docs/v1'], (_request, response) => {
    response.set('Cache-Control', 'max-age=300').type('application/json').send(texts().json);
  });
  router.get('/docs', (_request, response) => {
    response.set({ 'Content-Security-Policy': docsPolicy, 'Referrer-Policy': 'no-referrer' });
    response.set('Cache-Control', 'max-age=300').type('text/html').send(texts().page);
  });
  router.get('/problems/:slug', sendProblemType);
  return router;
}

function textsOf(document: Document): { json: string; page: string } {
  const json = JSON.stringify(document);
  return { json, page: docsPage(JSON.parse(json) as ShownDocument) };
}
