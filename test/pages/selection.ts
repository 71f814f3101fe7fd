// Selects the tests of the pages: `npm test` runs a short selection; `npm run test:pages` runs all tests.

/** Returns the patterns of the test files to leave out. */
export function withoutAllPages(env: NodeJS.ProcessEnv = process.env): string[] {
  return [env.FORMGATE_ALL_PAGES === undefined ? 'test/pages/all/**' : 'test/pages/console.test.ts'];
}
