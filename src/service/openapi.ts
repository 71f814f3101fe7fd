// The OpenAPI 3.1 document, made from the route table and the very schemas that validate, and a page to browse it.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import express, { Router } from 'express';
import helmet from 'helmet';
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import type { Answer, Route } from './http-app.ts';

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
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operation(route) };
  }
  return createDocument({
    openapi: '3.1.0',
    info: { title: options.title, version: options.version, description: options.description },
    paths,
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
  });
}

function operation(route: Route): ZodOpenApiOperationObject {
  const open = route.guards.some(({ name }) => name === 'anonymous');
  const headers = Object.entries(route.headers ?? {}).map(([name, description]) => [
    name,
    z.string().optional().meta({ description }),
  ]);
  return {
    summary: route.summary,
    ...(route.description && { description: route.description }),
    ...(!open && { security: [{ bearer: [] }] }),
    requestParams: {
      ...(isObject(route.params) && { path: route.params }),
      ...(isObject(route.query) && { query: route.query }),
      ...(headers.length > 0 && { header: z.object(Object.fromEntries(headers)) }),
    },
    ...(route.body && { requestBody: { required: true, content: { 'application/json': { schema: route.body } } } }),
    responses: Object.fromEntries(
      Object.entries(route.answers).map(([status, answer]) => [status, response(Number(status), answer)]),
    ),
  };
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

/** Serves the document at `/openapi.json` and at the older platform's `/swagger/docs/v1`, and a page at `/docs`. */
export function documentRoutes(document: Document): Router {
  const router = Router();
  const json = JSON.stringify(document);
  router.get(['/openapi.json', '/swagger/docs/v1'], (_request, response) => {
    response.set('Cache-Control', 'max-age=300').type('application/json').send(json);
  });
  const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  router.use('/docs', helmet({ contentSecurityPolicy: { directives: pageDirectives }, hsts: false }));
  router.get('/docs', (_request, response) => {
    response.type('text/html').send(page(document.info.title));
  });
  router.get('/docs/start.js', (_request, response) => {
    response.type('text/javascript').send(startScript);
  });
  router.use('/docs', express.static(assets, { index: false, redirect: false, maxAge: '1d' }));
  return router;
}

// The library sets styles from script; scripts come from this origin only.
const pageDirectives = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'", "'unsafe-inline'"],
  'img-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'upgrade-insecure-requests': null,
};

// Addresses are relative, so that the page works behind a proxy's path prefix.
const startScript = `const address = new URL('openapi.json', new URL('.', document.baseURI));
SwaggerUIBundle({ url: address.pathname, dom_id: '#documentation', deepLinking: true, tryItOutEnabled: false });
`;

const page = (title: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<main id="documentation"></main>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;
