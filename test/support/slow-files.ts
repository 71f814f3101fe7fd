// The test files that take 12 s or more on two processors. `npm test` leaves them out, so that it ends within minutes.
// `TEST_SIZES=all npm test` runs them first, as .ci/run does, and a run that names files or tests includes all files.
import { runsAllFiles } from './sizes.ts';

/** In this order, files that mostly compute alternate with files that mostly wait. */
export const slowFiles = [
  'test/faults/crash.test.ts',
  'src/service/redis/redis.test.ts',
  'test/monitoring/alerts.test.ts',
  'test/faults/token-handler-tenants.test.ts',
  'src/forms/registers/faults.test.ts',
  'dev/start.test.ts',
  'dev/tour.test.ts',
  'src/token-handler/sessions/requests.test.ts',
  'dev/postgres/postgres.test.ts',
  'src/token-handler/sessions/refresh.test.ts',
  'test/faults/token-handler-outages.test.ts',
  'test/faults/refresh.test.ts',
  'test/faults/expiry-outages.test.ts',
  'test/faults/outages.test.ts',
  'src/forms/definitions/schema-validator-hostile.test.ts',
  'test/screens/screens.test.ts',
  'test/faults/readiness.test.ts',
  'src/forms/outages.test.ts',
  'test/faults/expiry-crash.test.ts',
  'src/platform-server/configuration/hostile-schema.test.ts',
  'src/forms/outbox/erasure.test.ts',
  'src/platform-server/crash.test.ts',
  'src/token-handler/targets/transfer-rate.test.ts',
  'test/traces/traces.test.ts',
  'src/forms/registers/races.test.ts',
  'test/pages/token-handler-client.test.ts',
  'src/service/workers/limited-workers.test.ts',
  'src/platform-server/notifications/hostile-template.test.ts',
  'src/platform-server/notifications/delivery.test.ts',
  'reconciler/main.test.ts',
  'src/service/postgres/migrate.test.ts',
  'src/token-handler/clients/registrar.test.ts',
  'test/faults/saves.test.ts',
  'src/forms/outbox/last-notice.test.ts',
  'reconciler/core-clients/shadows.test.ts',
  'test/faults/token-handler-bodies.test.ts',
  'test/faults/expiry-races.test.ts',
  'test/faults/start-time.test.ts',
  'test/tracing/loaded-modules.test.ts',
  'src/forms/outbox/dispatcher.test.ts',
  'src/forms/outbox/subscriber.test.ts',
  'test/faults/transaction-pooling.test.ts',
  'test/faults/requests.test.ts',
  'src/image/config/check.test.ts',
  'src/forms/forms/expensive-bodies.test.ts',
  'src/forms/registers/limits.test.ts',
  'src/forms/notices/created-mail.test.ts',
  'src/platform-server/lost-connections.test.ts',
  'src/forms/busy.test.ts',
  'src/service/auth/identity-provider.test.ts',
  'test/pages/samples.test.ts',
  'src/service/operations/run-main.test.ts',
];

/** Returns the files that this run leaves out, and prints how many. `args` are the arguments after `vitest run`. */
export function withoutSlowFiles(
  args: string[] = process.argv.slice(3),
  env: NodeJS.ProcessEnv = process.env,
): string[] {
  const namesTests = args.some((argument) => !argument.startsWith('-') || argument.startsWith('-t'));
  if (runsAllFiles(env) || namesTests) return [];
  process.stderr.write(`${slowFiles.length} slow test files are left out. TEST_SIZES=all npm test runs all of them.\n`);
  return slowFiles;
}
