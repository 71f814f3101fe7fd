// Starts the longest test files first, so that the run does not end with one worker on a long file while the others are
// idle. Without the results of an earlier run, as in CI, vitest would start the largest files first.
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { slowFiles } from './slow-files.ts';

const longFiles = ['test/adversary/adversary.test.ts', ...slowFiles];

export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const nth = longFiles.findIndex((path) => moduleId.endsWith(`/${path}`));
      return nth < 0 ? longFiles.length : nth;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
