// Which Keycloak a test run is for: test/keycloak/main.ts tells it by the environment. Without it there is none, and tests
// use the embedded access service.
import type { KeycloakServer } from './admin-api.ts';

/** Names of the variables, which nobody sets by accident. */
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
