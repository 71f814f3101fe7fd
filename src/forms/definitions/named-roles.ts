// Finds out whether a caller has one of the roles that a form definition names. Nearly every request about a form asks
// this, and a tenant may name more than a hundred thousand roles.

/** The roles of lists in definitions. The lists are the same objects until the definition changes. */
const setsOfLists = new WeakMap<readonly string[], ReadonlySet<string>>();

/** True if the caller has one of the roles. `named` must not be changed after the first call. */
export function hasOneOf(callerRoles: ReadonlySet<string>, named: readonly string[]): boolean {
  let roles = setsOfLists.get(named);
  if (!roles) {
    roles = new Set(named);
    setsOfLists.set(named, roles);
  }
  return !callerRoles.isDisjointFrom(roles);
}
