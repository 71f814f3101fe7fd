// The shards of the modules for clients and their registrations.
import type { Shard } from './shard.ts';

const clients = 'src/token-handler/clients';

export const clientShards: Readonly<Record<string, Shard>> = {
  'client-rules': {
    modules: [
      'src/service/clients/client-entries.ts',
      'src/service/clients/client-rules.ts',
      'src/service/clients/client-url-rules.ts',
    ],
    tests: ['src/service/clients/client-rules.test.ts'],
  },
  'redirect-uri': {
    modules: ['src/service/clients/redirect-uri.ts'],
    tests: ['src/service/clients/redirect-uri.test.ts'],
  },
  client: {
    modules: [`${clients}/client-metadata.ts`, `${clients}/client-path.ts`, `${clients}/client.ts`],
    tests: [`${clients}/client.test.ts`, `${clients}/client-metadata.test.ts`, `${clients}/catalog-rules.test.ts`],
  },
  catalog: {
    modules: [
      `${clients}/background-tasks.ts`,
      `${clients}/catalog.ts`,
      `${clients}/client-document.ts`,
      `${clients}/maintained-client.ts`,
      `${clients}/registration.ts`,
    ],
    tests: [
      `${clients}/background-tasks.test.ts`,
      `${clients}/catalog-rules.test.ts`,
      `${clients}/client-document.test.ts`,
      `${clients}/maintained-client-rules.test.ts`,
      `${clients}/registration.test.ts`,
    ],
  },
  'issued-credentials': {
    modules: [`${clients}/issued-credentials.ts`],
    tests: [`${clients}/issued-credentials.test.ts`],
  },
  registrations: {
    modules: [`${clients}/provided-clients.ts`, `${clients}/provider-registration.ts`],
    tests: [`${clients}/provided-client-rules.test.ts`, `${clients}/provider-registration.test.ts`],
  },
  registrar: { modules: [`${clients}/registrar.ts`], tests: [`${clients}/registrar-rules.test.ts`] },
  'registration-store': {
    modules: [`${clients}/registration-store.ts`, `${clients}/registration-locks.ts`, `${clients}/leftover-clients.ts`],
    tests: [
      `${clients}/registration-store.test.ts`,
      `${clients}/registration-locks.test.ts`,
      `${clients}/leftover-clients.test.ts`,
    ],
    needsPostgres: true,
  },
  upkeep: {
    modules: [
      `${clients}/pending-work-store.ts`,
      `${clients}/key-ring-store.ts`,
      `${clients}/upkeep.ts`,
      `${clients}/upkeep-pace.ts`,
    ],
    tests: [`${clients}/pending-work-store.test.ts`, `${clients}/key-ages.test.ts`, `${clients}/upkeep-rules.test.ts`],
    needsPostgres: true,
  },
  'client-routes': {
    modules: [`${clients}/clients.ts`, `${clients}/routes.ts`],
    tests: [`${clients}/route-outcomes.test.ts`, `${clients}/clients.test.ts`],
    needsPostgres: true,
  },
};
