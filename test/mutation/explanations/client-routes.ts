// The mutants that survive in the routes for clients and in the start of their modules, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const clientRoutes: readonly Explanation[] = [
  {
    file: 'src/token-handler/clients/clients.ts',
    text: "background.untilDone({ task: 'write core client', client: client.id }, write, { lastTry: false });",
    changes: [['{ lastTry: false }', '{}']],
    kind: 'equivalent',
    why: 'without the member, the task does not run once more either.',
  },
  {
    file: 'src/token-handler/clients/clients.ts',
    text: "registrations.inc({ outcome: error instanceof Problem && error.status < 500 ? 'refused' : 'failed' });",
    changes: [['error.status < 500', 'error.status <= 500']],
    kind: 'equivalent',
    why: 'a registration throws no problem with the status 500.',
  },
  {
    file: 'src/token-handler/clients/routes.ts',
    text: "operationId: 'registerClient',",
    changes: [["'registerClient'", '""']],
    kind: 'killed elsewhere',
    why: '`openapi-documents.test.ts` checks the names of operations.',
  },
  {
    file: 'src/token-handler/clients/routes.ts',
    text: "operationId: 'updateClient',",
    changes: [["'updateClient'", '""']],
    kind: 'killed elsewhere',
    why: '`openapi-documents.test.ts` checks the names of operations.',
  },
];
