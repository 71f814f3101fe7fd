// Loads oidc-provider and suppresses its warning about an unsupported runtime. The warning is wrong for Node releases
// that are newer than the current LTS.
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
