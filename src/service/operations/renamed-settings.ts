// Settings that were renamed. For one version, a process accepts the old name of an environment variable and logs a
// warning. The chart accepts the old name in `env` and warns in its notes. Remove an entry one version after it was
// added.

/** New names of settings, keyed by their old names. */
export const renamedSettings: Record<string, string> = {};

export function oldNamesOf(name: string): string[] {
  return Object.keys(renamedSettings).filter((oldName) => renamedSettings[oldName] === name);
}
