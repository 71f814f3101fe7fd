// Starts the test files that take longest first, so that no worker is left alone with one of them at the end of a run.
// Without results of an earlier run, as in CI, vitest starts the largest files first.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those of 20 s and more. Files that compute much and files that wait much alternate. */
const longFiles = [
  'test/adversary/adversary.test.ts',
  'src/token-handler/sessions/reader.test.ts',
  'test/faults/crash.test.ts',
  'src/service/redis/redis.test.ts',
  'test/faults/token-handler-tenants.test.ts',
  'test/faults/expiry-crash.test.ts',
  'src/forms/registers/faults.test.ts',
  'dev/start.test.ts',
  'test/faults/lost-connections.test.ts',
  'src/token-handler/logout/backchannel.test.ts',
  'test/faults/outages.test.ts',
  'src/platform-server/notifications/hostile-template.test.ts',
  'src/forms/definitions/schema-validator-hostile.test.ts',
  'src/service/operations/run-main.test.ts',
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
