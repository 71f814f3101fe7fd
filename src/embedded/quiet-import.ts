// Loads what starts Formgate, without the warning that oidc-provider prints as it loads: it takes every Node that is not
// marked as LTS for unsupported, newer ones included.
export async function importQuietly(): Promise<typeof import('./start.ts')> {
  const warn = console.warn;
  console.warn = () => undefined;
  return import('./start.ts').finally(() => {
    console.warn = warn;
  });
}
