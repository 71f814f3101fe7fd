// The packages of the image, read from package-lock.json: the packages that `npm ci` installs in the image (see the
// Dockerfile), and the packages from which the pages are built.
import { z } from 'zod';

export interface Package {
  name: string;
  version: string;
  /** SPDX expression; undefined if the package declares none. */
  licence: string | undefined;
  /** Lower-case hexadecimal SHA-512 of the package's archive. */
  sha512: string;
}

const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({
      name: z.string().optional(),
      version: z.string().optional(),
      license: z.string().optional(),
      integrity: z.string().optional(),
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      peer: z.boolean().optional(),
      devOptional: z.boolean().optional(),
      link: z.boolean().optional(),
      dependencies: z.record(z.string(), z.string()).optional(),
      devDependencies: z.record(z.string(), z.string()).optional(),
    }),
  ),
});

/** Returns the packages in the image, sorted by name. Throws if a package has no checksum. */
export function imagePackages(lockFile: string): Package[] {
  const { packages } = lockSchema.parse(JSON.parse(lockFile));
  const installed = Object.entries(packages).filter(
    ([path, { dev, optional, peer, devOptional, link }]) =>
      path.includes('node_modules/') && !dev && !optional && !peer && !devOptional && !link,
  );
  return unique(installed.map(([path, entry]) => toPackage(path, entry)));
}

/** The package that builds the pages. The pages do not contain its dependencies. */
const builder = 'vite';

/** Packages that only the samples in `web/samples` use. The image does not contain them. */
const ofSamples = new Set(['react', 'react-dom']);

/**
 * Returns the packages that the workspace `web` names, and their dependencies, because the pages contain their code.
 */
export function pagePackages(lockFile: string): Package[] {
  const { packages } = lockSchema.parse(JSON.parse(lockFile));
  const found = new Map<string, Entry>();
  const visit = (name: string, from: string) => {
    if (name.startsWith('@types/') || ofSamples.has(name)) return;
    const path = locate(packages, name, from);
    const entry = packages[path] as Entry;
    if (found.has(path)) return;
    found.set(path, entry);
    if (name !== builder) for (const dependency of Object.keys(entry.dependencies ?? {})) visit(dependency, path);
  };
  for (const name of Object.keys(packages.web?.devDependencies ?? {})) visit(name, 'web');
  return unique([...found].map(([path, entry]) => toPackage(path, entry)));
}

/**
 * Finds the package that a module in the folder `from` imports: the nearest one in this folder or in a folder above it.
 */
function locate(packages: Record<string, Entry>, name: string, from: string): string {
  const own = `${from}/node_modules/${name}`;
  if (packages[own]) return own;
  const above = from.includes('/node_modules/') ? from.slice(0, from.lastIndexOf('/node_modules/')) : '';
  if (above !== '') return locate(packages, name, above);
  const path = `node_modules/${name}`;
  if (!packages[path]) throw new Error(`package-lock.json has no ${name}`);
  return path;
}

type Entry = z.infer<typeof lockSchema>['packages'][string];

function toPackage(path: string, { name, version = '', license, integrity = '' }: Entry): Package {
  const checksum = /^sha512-([A-Za-z0-9+/=]+)$/.exec(integrity.split(' ')[0] ?? '')?.[1];
  if (checksum === undefined) throw new Error(`package-lock.json has no SHA-512 of ${path}`);
  return {
    name: name ?? path.split('node_modules/').at(-1) ?? path,
    version,
    licence: license,
    sha512: Buffer.from(checksum, 'base64').toString('hex'),
  };
}

/** Sorts the packages and removes duplicates: a package may be installed in several places. */
function unique(packages: Package[]): Package[] {
  const byId = new Map(packages.map((item) => [`${item.name}@${item.version}`, item]));
  return [...byId.values()].sort((a, b) => a.name.localeCompare(b.name, 'en') || a.version.localeCompare(b.version));
}
