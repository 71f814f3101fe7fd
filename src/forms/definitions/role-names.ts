// Checks the names of roles in a form definition. Only roles of platform services are looked up, because these services
// register their roles. Only the identity provider knows the realm roles and the roles of other clients.
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { FormDefinition } from './definition.ts';

const lists = ['applicantRoles', 'assessorRoles', 'clerkRoles'] as const;

/**
 * Returns the problems of the definition's roles, at most `most`: a definition may have hundreds of thousands of roles.
 * `registrations` are the contents of the documents `platform:tenant-service`. Each document maps the URN of a service
 * to the roles of that service.
 */
export function roleProblems(
  definition: FormDefinition,
  prefix: string,
  registrations: readonly unknown[],
  most = Number.POSITIVE_INFINITY,
): FieldError[] {
  const isOfPlatform = (role: string) => role.startsWith(`${prefix}:`);
  const registered = registeredRoles(registrations);
  const problems: FieldError[] = [];
  for (const list of lists)
    for (const [index, role] of definition[list].entries()) {
      const detail = nameProblem(role) ?? (isOfPlatform(role) ? registrationProblem(role, registered) : undefined);
      if (detail === undefined) continue;
      problems.push({ pointer: jsonPointer([list, index]), detail });
      if (problems.length >= most) return problems;
    }
  return problems;
}

function nameProblem(role: string): string | undefined {
  if (role.trim() === '') return 'is empty, so no caller has it';
  return role === role.trim() ? undefined : 'begins or ends with a space, so no caller has it';
}

/** In tokens, the name of a service's role is `<service URN>:<role>`. */
function registrationProblem(name: string, registered: (service: string) => Set<unknown>): string | undefined {
  const end = name.lastIndexOf(':');
  const roles = registered(name.slice(0, end));
  if (roles.size === 0) return 'names a service that has registered no roles';
  return roles.has(name.slice(end + 1)) ? undefined : 'is not a role of this service';
}

/**
 * Returns a function that returns the roles of a service. The function collects the roles of a service only once,
 * because a tenant's documents and definitions may each have tens of thousands of roles.
 */
function registeredRoles(registrations: readonly unknown[]): (service: string) => Set<unknown> {
  const known = new Map<string, Set<unknown>>();
  return (service) => {
    let roles = known.get(service);
    if (!roles) {
      roles = new Set();
      for (const document of registrations) {
        const entry = isObject(document) && Object.hasOwn(document, service) ? document[service] : undefined;
        const listed: unknown[] = isObject(entry) && Array.isArray(entry.roles) ? entry.roles : [];
        for (const one of listed) roles.add(isObject(one) ? one.role : undefined);
      }
      known.set(service, roles);
    }
    return roles;
  };
}
