// Checks the names of roles in a form definition. Platform services register their roles, so only these roles are
// looked up. Realm roles and the roles of other clients are known only to the identity provider.
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { FormDefinition } from './definition.ts';

const lists = ['applicantRoles', 'assessorRoles', 'clerkRoles'] as const;

/**
 * `registrations` are the contents of the documents `platform:tenant-service`. Each document maps the URN of a service
 * to the roles of that service.
 */
export function roleProblems(
  definition: FormDefinition,
  prefix: string,
  registrations: readonly unknown[],
): FieldError[] {
  const isOfPlatform = (role: string) => role.startsWith(`${prefix}:`);
  return lists.flatMap((list) =>
    definition[list].flatMap((role, index) => {
      const problem = nameProblem(role) ?? (isOfPlatform(role) ? registrationProblem(role, registrations) : undefined);
      return problem === undefined ? [] : [{ pointer: jsonPointer([list, index]), detail: problem }];
    }),
  );
}

function nameProblem(role: string): string | undefined {
  if (role.trim() === '') return 'is empty, so no caller has it';
  return role === role.trim() ? undefined : 'begins or ends with a space, so no caller has it';
}

/** In tokens, the name of a service's role is `<service URN>:<role>`. */
function registrationProblem(name: string, registrations: readonly unknown[]): string | undefined {
  const end = name.lastIndexOf(':');
  const [service, role] = [name.slice(0, end), name.slice(end + 1)];
  const registered = registrations.flatMap((document) => {
    const entry = isObject(document) && Object.hasOwn(document, service) ? document[service] : undefined;
    return isObject(entry) && Array.isArray(entry.roles) ? entry.roles : [];
  });
  if (registered.length === 0) return 'names a service that has registered no roles';
  const isKnown = registered.some((one: unknown) => isObject(one) && one.role === role);
  return isKnown ? undefined : 'is not a role of this service';
}
