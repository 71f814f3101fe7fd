// Sample routes of each kind, for tests that generate an OpenAPI document and a page from them.
import { z } from 'zod';
import { anonymous, type Guard, route } from '../../src/service/http/http-app.ts';
import { aboutRoutes } from '../../src/service/openapi/about-routes.ts';

const bearer: Guard = { name: 'bearer', admits: ['bearer'], check: () => undefined };
const form = z
  .object({
    id: z.uuid(),
    status: z.enum(['Draft', 'Locked']),
    created: z.iso.datetime(),
    createdBy: z.object({ id: z.string(), name: z.string() }),
  })
  .meta({ id: 'Form', description: 'A form <b>& its</b> "fields"' });
const responses = {
  200: { description: 'The form', schema: form, headers: { ETag: 'Its revision' } },
  404: { description: 'Unknown' },
};
const handle = () => undefined;
const params = z.object({ formId: z.uuid() });
const channel = z.strictObject({ channel: z.enum(['email', 'sms']), address: z.string().max(100) });

export const documentedRoutes = [
  ...aboutRoutes({ name: 'Form service', description: 'Drafts', api: '/form/v1', checks: {} }),
  route({
    method: 'get',
    path: '/form/v1/forms/:formId',
    summary: 'Read a form',
    description:
      '<script>alert(1)</script> and `urn:example:platform:configuration:v2:/configuration/data-register/<name>`',
    guards: [bearer],
    params,
    query: z.strictObject({
      tenantId: z.string().optional(),
      top: z.coerce.number().int().min(1).max(100).default(25),
    }),
    headers: { 'If-None-Match': 'An ETag' },
    responses,
    handle,
  }),
  route({
    method: 'put',
    path: '/form/v1/forms/:formId',
    summary: 'Replace a form',
    guards: [bearer],
    params,
    body: z.strictObject({
      name: z.string().regex(/^[a-z]+$/),
      channels: z.array(channel).min(1).optional(),
      any: z.unknown(),
    }),
    responses,
    handle,
  }),
  route({
    method: 'post',
    path: '/form/v1/forms',
    summary: 'Create a form',
    guards: [anonymous],
    body: z.union([z.strictObject({ a: z.literal(1) }), z.array(z.string())]),
    responses: { 201: { description: 'Created', schema: form }, 400: { description: 'Invalid' } },
    handle,
  }),
];
