// Compares what a person typed or opened with the tenant of a session.

/** True if `asked` is the realm or the name of the tenant. The sign-in compares names in the same way. */
export function isTenant(asked: string, { realm, name }: { realm: string; name: string }): boolean {
  return asked.toLowerCase() === realm.toLowerCase() || kebabCase(asked) === kebabCase(name);
}

const kebabCase = (name: string) => name.trim().toLowerCase().replaceAll(/\s+/g, '-');
