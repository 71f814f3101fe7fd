// Selects the tests of the pages: `npm test` runs a short selection; `npm run test:pages` runs all tests, in all views
// or with `VIEWS=short` in fewer.

/** Returns the patterns of the test files to leave out. */
export function withoutAllPages(env: NodeJS.ProcessEnv = process.env): string[] {
  return [env.FORMGATE_ALL_PAGES === undefined ? 'test/pages/all/**' : 'test/pages/console.test.ts'];
}

/**
 * Returns the views in which this run tests each page. Without the view `light`, the others still contain both colour
 * schemes, a wide and a narrow screen.
 */
export const viewsOfRun = <View extends { name: string }>(
  views: readonly View[],
  env: NodeJS.ProcessEnv = process.env,
): View[] => views.filter(({ name }) => env.VIEWS !== 'short' || name !== 'light');
