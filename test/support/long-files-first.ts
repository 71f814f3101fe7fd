// Starts the longest test files first, so that no worker is left with one of them at the end of a run. Without the
// results of an earlier run, as in CI, vitest would start the largest files first.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take 20 s or more. Files that mostly compute alternate with files that mostly wait. */
const longFiles = [
  'test/adversary/adversary.test.ts',
  'src/token-handler/sessions/reader.test.ts',
  'test/faults/crash.test.ts',
  'src/service/redis/redis.test.ts',
  'test/faults/token-handler-tenants.test.ts',
  'test/faults/expiry-crash.test.ts',
  'src/forms/registers/faults.test.ts',
  'dev/start.test.ts',
  'test/monitoring/prometheus.test.ts',
  'test/faults/lost-connections.test.ts',
  'src/token-handler/logout/backchannel.test.ts',
  'test/faults/outages.test.ts',
  'src/platform-server/notifications/hostile-template.test.ts',
  'src/forms/definitions/schema-validator-hostile.test.ts',
  'src/service/operations/run-main.test.ts',
  'src/token-handler/clients/registrar.test.ts',
  'src/forms/registers/limits.test.ts',
  'test/monitoring/alerts.test.ts',
];

export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const nth = longFiles.findIndex((path) => moduleId.endsWith(`/${path}`));
      return nth < 0 ? longFiles.length : nth;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
