// The Keycloak of a test run, which test/keycloak/main.ts passes in the environment. Without it, tests use the embedded
// identity provider.
import type { KeycloakServer } from './admin-api.ts';

/** Names of the environment variables, chosen so that no one sets them by accident. */
export const variables = {
  url: 'FORMGATE_TEST_KEYCLOAK_URL',
  username: 'FORMGATE_TEST_KEYCLOAK_ADMIN',
  password: 'FORMGATE_TEST_KEYCLOAK_PASSWORD',
};

export function keycloakOfRun(env: NodeJS.ProcessEnv = process.env): KeycloakServer | undefined {
  const url = env[variables.url];
  if (!url) return undefined;
  return { url, username: env[variables.username] ?? '', password: env[variables.password] ?? '' };
}
