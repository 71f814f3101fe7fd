// Loads oidc-provider without the warning that it prints as it loads: it takes every Node that is not marked as LTS for
// unsupported, newer ones included.
export type OidcLibrary = typeof import('oidc-provider');

const falseAlarm = /^oidc-provider WARNING: Unsupported runtime/;

export async function loadOidcLibrary(): Promise<OidcLibrary> {
  const warn = console.warn;
  console.warn = (...words: unknown[]) => {
    if (!falseAlarm.test(String(words[0]))) warn(...words);
  };
  return import('oidc-provider').finally(() => {
    console.warn = warn;
  });
}
