// Counts sign-ins by outcome and reason. A sign-in that starts again is counted only once, at its end. If the person
// does not return from the identity provider, the sign-in is not counted.
import type { Clock } from '../../service/clock.ts';
import type { Route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { databaseProblem } from '../../service/postgres/postgres.ts';
import { type PageName, pageFor, type SignInFacts } from '../pages/catalogue.ts';
import { createFailingClients, type SignInClient } from './failing-clients.ts';
import type { ErrorResponse } from './failures.ts';
import { createSignInMetrics } from './sign-in-metrics.ts';

type SignInEndpoint = 'auth' | 'callback';

export type SignInOutcomes = ReturnType<typeof createSignInOutcomes>;

export interface SignInOutcomesOptions {
  metrics: Pick<Metrics, 'registry' | 'dependencyFailures'>;
  clock: Clock;
  log: Logger;
}

/** Failure pages that mean an abandoned sign-in: the person took too long, or returned in another browser. */
const abandoned: ReadonlySet<PageName> = new Set(['sign-in-expired']);

export function createSignInOutcomes(options: SignInOutcomesOptions) {
  const clients = createFailingClients(options);
  const { registry, dependencyFailures } = options.metrics;
  const { signIns } = createSignInMetrics({ registry, failingClients: clients.count });

  function countFailure(endpoint: SignInEndpoint, error: unknown, facts: SignInFacts): void {
    const problem = error instanceof Problem ? error : databaseProblem(error);
    const reason = pageFor(endpoint, problem?.slug ?? 'internal', facts);
    const outcome = abandoned.has(reason) ? 'abandoned' : 'failed';
    signIns.inc({ outcome, reason });
    if (outcome === 'failed' && facts.checked) clients.failed(facts.checked, reason);
  }

  return {
    succeeded(client: SignInClient): void {
      signIns.inc({ outcome: 'succeeded', reason: 'none' });
      clients.succeeded(client);
    },
    /** Counts a sign-in that the person cancelled, or that the identity provider refused without asking the person. */
    cancelled(): void {
      signIns.inc({ outcome: 'abandoned', reason: 'cancelled' });
    },
    /** Logs an error response of the identity provider, which the response to the browser does not contain. */
    providerError({ tenantId: tenant, clientId: client }: SignInClient, response: ErrorResponse | undefined): void {
      if (!response) return;
      // `redeemCode` has already counted a failure of the token endpoint.
      if (response.status === undefined) dependencyFailures.inc({ dependency: 'identity-provider', kind: 'sign-in' });
      options.log.warn({ tenant, client, ...response }, 'the identity provider responded to a sign-in with an error');
    },
    /** Returns the route with a handler that also counts failed sign-ins. */
    observe(endpoint: SignInEndpoint, route: Route): Route {
      const { handle } = route;
      if (!handle) return route;
      return {
        ...route,
        async handle(input, request, response) {
          try {
            await handle(input, request, response);
          } catch (error) {
            countFailure(endpoint, error, response.locals.signInFacts ?? {});
            throw error;
          }
        },
      };
    },
  };
}
