// The tenant that an operator of core works for. Administrators of a tenant need not name theirs.
let chosen: string | undefined;

/** URN of the tenant, or undefined. */
export function chosenTenant(): string | undefined {
  return chosen;
}

export function chooseTenant(id: string | undefined): void {
  chosen = id;
}
