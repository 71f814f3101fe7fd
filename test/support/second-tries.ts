// At the end of a run, lists the tests that failed at first and passed at their second try, with the failures. Each
// such test points to a defect of the test or of the product. Only CI grants a second try, so that a rare failure does
// not block an unrelated change.
import type { Reporter, TestCase, VitestPluginContext } from 'vitest/node';

/**
 * A plugin that adds the reporter. If the configuration listed the reporter, a command that names reporters would
 * replace it.
 */
export const listSecondTries = () => ({
  name: 'formgate:list-second-tries',
  configureVitest: ({ vitest }: VitestPluginContext) => void vitest.config.reporters.push(new SecondTries()),
});

/** Maximum number of characters of a message. The message of a failed property test contains the counterexample. */
const longestMessage = 2_000;

class SecondTries implements Reporter {
  readonly #found: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { retryCount = 0 } = test.diagnostic() ?? {};
    const { state, errors = [] } = test.result();
    if (retryCount === 0 || state !== 'passed') return;
    const failures = errors.map(({ message }) => message.slice(0, longestMessage).replace(/^/gm, '    '));
    this.#found.push([`  ${test.module.relativeModuleId} > ${test.fullName}`, ...failures].join('\n'));
  }

  onTestRunEnd(): void {
    if (this.#found.length === 0) return;
    process.stderr.write(`\n${this.#found.length} tests needed a second try:\n${this.#found.join('\n')}\n`);
  }
}
