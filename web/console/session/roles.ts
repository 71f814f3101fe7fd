// Checks the caller's roles, so that pages can explain which actions are allowed. Only the services enforce the roles.
import type { Session } from './session.ts';

export type Role = 'form-admin' | 'configuration-admin' | 'token-handler-admin';

const services: Record<Role, string> = {
  'form-admin': 'form-service',
  'configuration-admin': 'configuration-service',
  'token-handler-admin': 'token-handler',
};

/**
 * True if the caller has the role. Client roles begin with the client's URN, whose prefix depends on the installation.
 */
export function hasRole({ roles }: Session, role: Role): boolean {
  return roles.some((name) => name.endsWith(`:platform:${services[role]}:${role}`));
}

export function roleText(role: Role): string {
  return `${role} (of the ${services[role]})`;
}
