// Responds with 500 to a body of more than 1 MiB, as all services of the reference implementation do.
import type { Guard, Route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';

const largest = 1_048_576;

const bodyLimit: Guard = {
  name: 'referenceBodyLimit',
  check(request) {
    if (Number(request.headers['content-length'] ?? 0) > largest)
      throw new Problem('internal', 'Internal Server Error');
  },
};

export function refuseLargeBodies(routes: Route[]): Route[] {
  return routes.map((item) => (item.body ? { ...item, guards: [...item.guards, bodyLimit] } : item));
}
