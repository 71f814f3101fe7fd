// Lists the tests that failed at first and passed at their second try, at the end of a run. Each of them is a defect of the
// test or of the product. Only CI grants a second try, so that a rare one does not refuse a change that it has nothing
// to do with.
import type { Reporter, TestCase, VitestPluginContext } from 'vitest/node';

/** Adds the reporter. It is a plugin, because a command that names reporters replaces those of the configuration. */
export const listSecondTries = () => ({
  name: 'formgate:list-second-tries',
  configureVitest: ({ vitest }: VitestPluginContext) => void vitest.config.reporters.push(new SecondTries()),
});

class SecondTries implements Reporter {
  readonly #found: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { retryCount = 0 } = test.diagnostic() ?? {};
    if (retryCount > 0 && test.result().state === 'passed')
      this.#found.push(`  ${test.module.relativeModuleId} > ${test.fullName}`);
  }

  onTestRunEnd(): void {
    if (this.#found.length === 0) return;
    process.stderr.write(`\n${this.#found.length} tests needed a second try:\n${this.#found.join('\n')}\n`);
  }
}
