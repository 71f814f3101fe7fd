// Finds and adds packages for other platforms that npm leaves out of a lock file because the registry does not have
// them. On every platform, `npm ci` rejects a lock file that lacks these packages. Existing entries do not change.

/** An entry of `packages` in package-lock.json (lockfileVersion 3), with the members that matter here. */
interface LockedPackage {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

export interface LockFile {
  packages: Record<string, LockedPackage>;
}

const systems: Record<string, string> = { windows: 'win32' };
const knownSystems = /^(?:aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32|windows)$/;
const knownProcessors = /^(?:arm|arm64|ia32|loong64|mips64el|ppc64|riscv64|s390x|x64)$/;

/**
 * Returns the missing entries, keyed by path. They are optional dependencies of locked packages, for other platforms.
 */
export function missingPlatformPackages({ packages }: LockFile): Record<string, LockedPackage> {
  const missing: Record<string, LockedPackage> = {};
  for (const [path, parent] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(parent.optionalDependencies ?? {})) {
      const platform = platformOf(name);
      if (platform === undefined || isLocked(packages, path, name)) continue;
      missing[`node_modules/${name}`] = {
        // The members are in npm's order, so that npm does not rewrite the entry.
        version: range.replace(/^[\^~]/, ''),
        cpu: platform.cpu,
        ...(parent.dev === true ? { dev: true } : {}),
        ...(platform.libc === undefined ? {} : { libc: platform.libc }),
        optional: true,
        os: platform.os,
      };
    }
  }
  return missing;
}

/** Returns the lock file with the missing entries, sorted by path as npm does. */
export function completeLockFile<L extends LockFile>(lock: L): L {
  const packages = Object.entries({ ...lock.packages, ...missingPlatformPackages(lock) });
  packages.sort(([a], [b]) => a.localeCompare(b, 'en'));
  return { ...lock, packages: Object.fromEntries(packages) };
}

// npm searches the package's own node_modules first, then each folder above it.
function isLocked(packages: Record<string, LockedPackage>, path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    if (`${folder}${folder === '' ? '' : '/'}node_modules/${name}` in packages) return true;
    if (folder === '') return false;
  }
}

// Returns the platform in a package's name: "@swc/core-linux-x64-musl" is for linux, x64 and musl. Returns undefined if
// the package is not for a single platform.
function platformOf(name: string): { os: string[]; cpu: string[]; libc?: string[] } | undefined {
  const words = name.split(/[/-]/);
  const system = words.find((word) => knownSystems.test(word));
  const processor = words.find((word) => knownProcessors.test(word));
  if (system === undefined || processor === undefined) return undefined;
  const platform = { os: [systems[system] ?? system], cpu: [processor] };
  if (system !== 'linux') return platform;
  if (words.some((word) => word.startsWith('musl'))) return { ...platform, libc: ['musl'] };
  return words.some((word) => word.startsWith('gnu')) ? { ...platform, libc: ['glibc'] } : platform;
}
