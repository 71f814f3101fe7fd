// What clients of the older platform ask a service about itself: `GET /` and `GET /health` on the main port.
// Kubernetes' probes are elsewhere (operations-app); neither of these says anything that is not public.
import { z } from 'zod';
import { type Clock, systemClock } from '../clock.ts';
import { anonymous, type Route, route } from '../http/http-app.ts';

export interface AboutOptions {
  name: string;
  description: string;
  /** Root of the API, such as `/form/v1`. */
  api: string;
  /** What the service depends on, by the older platform's names (access, directory, tenant, configuration, event, db) and ours. */
  checks: Record<string, () => Promise<boolean>>;
  clock?: Clock;
}

/** Milliseconds after which a check that has not answered counts as failed. */
const checkLimit = 2_000;
/** Milliseconds for which answers are kept: anybody may ask, and each question costs others a request. */
const healthAge = 120_000;

const link = z.object({ href: z.string() });
const aboutSchema = z.object({
  name: z.string(),
  description: z.string(),
  _links: z.object({ self: link, health: link, api: link, docs: link }),
});

export function aboutRoutes(options: AboutOptions): Route[] {
  const health = createHealth(options.checks, options.clock ?? systemClock);
  return [
    route({
      method: 'get',
      path: '/',
      summary: 'What this service is',
      guards: [anonymous],
      answers: { 200: { description: 'Name and links', schema: aboutSchema } },
      handle(_input, request, response) {
        const root = `${request.protocol}://${request.get('host')}`;
        const { name, description } = options;
        const href = (path: string) => ({ href: `${root}${path}` });
        const _links = {
          self: href('/'),
          health: href('/health'),
          api: href(options.api),
          docs: href('/swagger/docs/v1'),
        };
        response.json({ name, description, _links });
      },
    }),
    route({
      method: 'get',
      path: '/health',
      summary: 'Whether what the service depends on answers',
      description: 'Always 200; the values tell. Answers are up to two minutes old.',
      guards: [anonymous],
      answers: { 200: { description: 'One boolean for each dependency', schema: z.record(z.string(), z.boolean()) } },
      async handle(_input, _request, response) {
        response.json(await health());
      },
    }),
  ];
}

/** Asks each check at most once in two minutes, however often it is called. */
export function createHealth(checks: AboutOptions['checks'], clock: Clock): () => Promise<Record<string, boolean>> {
  let asked = Number.NEGATIVE_INFINITY;
  let answer: Promise<Record<string, boolean>> | undefined;
  return () => {
    const now = clock().getTime();
    if (answer && now < asked + healthAge) return answer;
    asked = now;
    answer = Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await passes(check)] as const),
    ).then((pairs) => Object.fromEntries(pairs));
    return answer;
  };
}

/** Whether a check answers true in time. */
async function passes(check: () => Promise<boolean>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), checkLimit);
  try {
    return await Promise.race([check(), late]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
