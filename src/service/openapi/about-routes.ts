// `GET /` and `GET /health` on the main port, for clients of the older platform. They return only public information.
// Kubernetes' probes use the metrics port instead.
import { z } from 'zod';
import { type Clock, systemClock } from '../clock.ts';
import { anonymous, type Route, route } from '../http/http-app.ts';
import { createShortCache } from '../short-cache.ts';
import { within } from '../time-limit.ts';

export interface AboutOptions {
  name: string;
  description: string;
  /** Root of the API, such as `/form/v1`; a list if the process serves several. */
  api: string | readonly string[];
  /**
   * One check for each dependency. The names access, directory, tenant, configuration, event and db are those of the
   * older platform; further dependencies have new names.
   */
  checks: Record<string, () => Promise<boolean>>;
  clock?: Clock;
}

/** Milliseconds after which an unfinished check counts as failed. */
const checkLimit = 2_000;
/**
 * Milliseconds for which the results of the checks are cached, because anyone may request them and each check sends a
 * request to another service.
 */
const healthAge = 10_000;

const link = z.object({ href: z.string() });
const aboutSchema = z.object({
  name: z.string(),
  description: z.string(),
  _links: z.object({ self: link, health: link, api: link.or(z.array(link)), docs: link }),
});

export function aboutRoutes(options: AboutOptions): Route[] {
  const health = createHealth(options.checks, options.clock ?? systemClock);
  return [
    route({
      method: 'get',
      path: '/',
      summary: 'What this service is',
      guards: [anonymous],
      responses: { 200: { description: 'Name and links', schema: aboutSchema } },
      handle(_input, request, response) {
        const root = `${request.protocol}://${request.get('host')}`;
        const { name, description } = options;
        const href = (path: string) => ({ href: `${root}${path}` });
        const _links = {
          self: href('/'),
          health: href('/health'),
          api: typeof options.api === 'string' ? href(options.api) : options.api.map(href),
          docs: href('/swagger/docs/v1'),
        };
        response.json({ name, description, _links });
      },
    }),
    route({
      method: 'get',
      path: '/health',
      summary: 'Whether each dependency of the service responds',
      description: 'Always 200. The values are up to ten seconds old.',
      guards: [anonymous],
      responses: { 200: { description: 'One boolean for each dependency', schema: z.record(z.string(), z.boolean()) } },
      async handle(_input, _request, response) {
        response.json(await health());
      },
    }),
  ];
}

/** Returns a function that runs the checks at most once in ten seconds. */
function createHealth(checks: AboutOptions['checks'], clock: Clock): () => Promise<Record<string, boolean>> {
  const cached = createShortCache({
    freshFor: healthAge,
    most: 1,
    clock,
    async read() {
      const pairs = Object.entries(checks).map(async ([name, check]) => [name, await passes(check)] as const);
      return Object.fromEntries(await Promise.all(pairs));
    },
  });
  return () => cached('');
}

/** True if the check resolves to true within `checkLimit`. */
async function passes(check: () => Promise<boolean>): Promise<boolean> {
  try {
    return await within(check(), checkLimit, false);
  } catch {
    return false;
  }
}
