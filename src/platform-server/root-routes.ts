// What every service of the platform shows of itself: a description with links, and its health as older clients ask
// for it. Whether the process may get requests is told by /readyz on the metrics port instead.
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import { anonymous, type Route, route } from '../service/http/http-app.ts';
import { createHealth } from '../service/openapi/about-routes.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';

const link = z.object({ href: z.string() });

export function rootRoutes(options: { databaseUrl: string; clock: Clock }): Route[] {
  const health = createHealth({ db: () => canConnect(options.databaseUrl) }, options.clock);
  return [
    route({
      method: 'get',
      path: '/',
      summary: 'Describe this server',
      guards: [anonymous],
      answers: {
        200: {
          description: 'Name, description and links',
          schema: z.object({
            name: z.string(),
            description: z.string(),
            _links: z.object({ self: link, health: link, api: z.array(link), docs: link }),
          }),
        },
      },
      handle(_input, request, response) {
        const base = `${request.protocol}://${request.get('host') ?? 'localhost'}`;
        const to = (path: string) => ({ href: `${base}${path}` });
        response.json({
          name: 'Platform server',
          description: 'Configuration, directory, tenants, notifications and events for clusters that have none.',
          _links: { self: to('/'), health: to('/health'), api: apiPaths.map(to), docs: to('/swagger/docs/v1') },
        });
      },
    }),
    route({
      method: 'get',
      path: '/health',
      summary: 'Health in the older shape; 200 whatever it is',
      description: 'Results are cached for up to two minutes.',
      guards: [anonymous],
      answers: { 200: { description: 'A boolean for each part', schema: z.record(z.string(), z.boolean()) } },
      async handle(_input, _request, response) {
        const { db = false } = await health();
        response.json({ db, directory: db, tenant: db, configuration: db, notification: db, event: db });
      },
    }),
  ];
}

const apiPaths = ['/configuration/v2', '/directory/v2', '/api/tenant/v2', '/subscription/v1', '/event/v1'];
