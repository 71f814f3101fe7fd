// Builds the images of the cluster tests and loads them into the cluster. BUILD_IMAGE, RUN_IMAGE and DATA_IMAGE may
// name base images; otherwise they are built from Debian packages, because a registry may be unreachable.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { attempt, run } from './commands.ts';

const project = join(import.meta.dirname, '../..');
const buildah = { BUILDAH_ISOLATION: 'chroot', STORAGE_DRIVER: process.env.STORAGE_DRIVER || 'overlay' };

/** Names of the images in the cluster. */
export interface Images {
  /** The image of Formgate. */
  formgate: string;
  /** The image with Postgres and Redis for a trial installation. */
  data: string;
  /** The image with the identity provider and the mailbox of the tests. */
  parts: string;
}

/** The packages that the identity provider and the mailbox import. */
const partsPackages = ['express', 'jose', 'mailparser', 'oidc-provider', 'pino', 'smtp-server', 'zod'];

export async function buildImages(): Promise<Images> {
  const base = await findBaseImages();
  const npmrc = join(homedir(), '.npmrc');
  const formgate = await build(project, 'formgate', [
    ...['--layers', '--build-arg', `BUILD_IMAGE=${base.BUILD_IMAGE}`, '--build-arg', `RUN_IMAGE=${base.RUN_IMAGE}`],
    ...(existsSync(npmrc) ? ['--secret', `id=npmrc,src=${npmrc}`] : []),
  ]);
  return { formgate, data: base.DATA_IMAGE, parts: await buildParts(base.RUN_IMAGE) };
}

type BaseImages = Record<'BUILD_IMAGE' | 'RUN_IMAGE' | 'DATA_IMAGE', string>;

async function findBaseImages(): Promise<BaseImages> {
  const { BUILD_IMAGE, RUN_IMAGE, DATA_IMAGE } = process.env;
  if (BUILD_IMAGE && RUN_IMAGE && DATA_IMAGE) return { BUILD_IMAGE, RUN_IMAGE, DATA_IMAGE };
  const env = { NODE: process.execPath };
  const said = await run('bash', [join(import.meta.dirname, 'base-images.sh')], { env, timeout: 900_000 });
  const { BUILD_IMAGE: forBuild = '', RUN_IMAGE: forRun = '', DATA_IMAGE: forData = '' } = parseVariables(said);
  return { BUILD_IMAGE: forBuild, RUN_IMAGE: forRun, DATA_IMAGE: forData };
}

function parseVariables(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}

/**
 * Builds an image and returns its name. The tag changes with the image's content, so that a cluster never uses an older
 * image.
 */
async function build(context: string, name: string, args: string[]): Promise<string> {
  const untagged = `localhost/formgate-tests/${name}`;
  await run('buildah', ['bud', '-q', ...args, '-t', `${untagged}:latest`, context], { env: buildah, timeout: 900_000 });
  const id = await run(
    'buildah',
    ['inspect', '--type', 'image', '--format', '{{.FromImageID}}', `${untagged}:latest`],
    {
      env: buildah,
    },
  );
  const tagged = `${untagged}:${id.trim().slice(0, 12)}`;
  await run('buildah', ['tag', `${untagged}:latest`, tagged], { env: buildah });
  return tagged;
}

/** Builds an image of the identity provider and the mailbox, with the packages that they need. */
async function buildParts(runImage: string): Promise<string> {
  const context = mkdtempSync(join(tmpdir(), 'formgate-parts-'));
  try {
    writeFileSync(join(context, 'package.json'), '{ "type": "module" }\n');
    writeFileSync(
      join(context, 'Dockerfile'),
      `FROM ${runImage}\nWORKDIR /app\nCOPY . ./\nUSER 65532:65532\nENTRYPOINT ["/nodejs/bin/node", "test/cluster/parts/main.ts"]\n`,
    );
    for (const path of ['src/service', 'dev', 'test/cluster/parts', 'test/support/memory-entity-store.ts'])
      cpSync(join(project, path), join(context, path), { recursive: true });
    const packages = new Set<string>();
    collectPackages(partsPackages, project, packages);
    for (const folder of packages)
      cpSync(join(project, folder), join(context, folder), { recursive: true, dereference: true });
    return await build(context, 'parts', []);
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

/** Adds to `found` the folders of the packages and of their dependencies, relative to the project. */
function collectPackages(names: string[], from: string, found: Set<string>): void {
  for (const name of names) {
    const folder = findPackage(name, from);
    if (folder === undefined || found.has(folder)) continue;
    found.add(folder);
    const manifest: { dependencies?: Record<string, string> } = JSON.parse(
      readFileSync(join(project, folder, 'package.json'), 'utf8'),
    );
    collectPackages(Object.keys(manifest.dependencies ?? {}), join(project, folder), found);
  }
}

/** Finds a package's folder as Node does: in `from` or in a folder above it. */
function findPackage(name: string, from: string): string | undefined {
  for (let folder = from; folder.startsWith(project); folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate.slice(project.length + 1);
  }
  return undefined;
}

/**
 * Loads the images into the cluster with the command `loader NAME` or, without a loader, into kind. Throws if there is
 * no loader and the cluster is not a kind cluster.
 */
export async function loadImages(images: Images, loader: string | undefined): Promise<void> {
  for (const name of new Set(Object.values(images))) {
    if (loader) await run('bash', ['-c', `${loader} "$1"`, 'load', name], { timeout: 600_000 });
    else await loadIntoKind(name);
  }
}

async function loadIntoKind(name: string): Promise<void> {
  const { stdout: context } = await attempt('kubectl', ['config', 'current-context']);
  const [, cluster] = /^kind-(.+)$/.exec(context.trim()) ?? [];
  if (cluster === undefined)
    throw new Error('Set IMAGE_LOADER to a command that loads an image, given by name, into this cluster.');
  const folder = mkdtempSync(join(tmpdir(), 'formgate-image-'));
  try {
    const archive = join(folder, 'image.tar');
    await run('buildah', ['push', '-q', name, `docker-archive:${archive}:${name}`], { env: buildah });
    await run('kind', ['load', 'image-archive', archive, '--name', cluster]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
