// Builds the pages into web/dist, with a compressed copy of each file beside it. Does nothing if web/dist was built
// from the same files. `npm run build --workspace web` runs this file.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const root = import.meta.dirname;
const output = join(root, 'dist');
/** The apps. Each is a folder with an index.html, and is served under the folder's name. */
const apps = ['apply', 'console'];
/**
 * The modules. Each is a folder with a script of the same name. The scripts are for frontends and for /docs/try, not
 * for the pages.
 */
const modules = ['token-handler-client', 'try'];
const sources = [...apps, 'shared', ...modules, 'build.ts', 'package.json', 'tsconfig.json', '../package-lock.json'];

/** Builds the pages if a source has changed since the last build. Concurrent runs are safe. */
export async function buildPages(): Promise<void> {
  if (existsSync(join(output, hashOf(sources)))) return;
  // Uses a separate process with its own NODE_ENV. With the NODE_ENV of tests, Vite would build for development, and
  // the output would contain paths of this machine.
  const env = { ...process.env, NODE_ENV: 'production' };
  await promisify(execFile)(process.execPath, [import.meta.filename], { env });
}

async function build(): Promise<void> {
  const version = hashOf(sources);
  if (existsSync(join(output, version))) return;
  const folder = await mkdtemp(join(root, '.build-'));
  try {
    for (const app of apps) await buildApp(app, join(folder, app));
    for (const name of modules) await buildModule(name, join(folder, name));
    await writeFile(join(folder, version), '');
    // Only the owner can read a new temporary folder, and the image runs as another user.
    await chmod(folder, 0o755);
    await replaceOutput(folder, version);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Leaves ajv out of the pages. JSON Forms imports ajv for functions that the pages do not use. Ajv compiles schemas
 * with eval, which the pages' policy forbids, and is twice as large as a page.
 */
const withoutAjv = {
  name: 'without-ajv',
  enforce: 'pre' as const,
  resolveId: (id: string) => (id === 'ajv' || id === 'ajv-formats' ? '\0without-ajv' : undefined),
  load: (id: string) => (id === '\0without-ajv' ? 'export default undefined;' : undefined),
};

/**
 * Builds an app into a folder. With `sourcemap: 'hidden'`, also writes source maps that no file refers to. The option
 * does not change the other files.
 */
export async function buildApp(app: string, outDir: string, sourcemap: false | 'hidden' = false): Promise<void> {
  // Vite is loaded here, because it is not needed if the pages are already built.
  const vite = await import('vite');
  await vite.build({
    configFile: false,
    root: join(root, app),
    base: `/${app}/`,
    logLevel: 'warn',
    plugins: [withoutAjv],
    // By default, Vite turns files below 4 KB into `data:` URLs, which the pages' policy forbids.
    build: {
      ...{ outDir, emptyOutDir: true, sourcemap, assetsInlineLimit: 0, target: 'es2022' },
      modulePreload: { polyfill: false },
    },
  });
  const names = await readdir(outDir, { recursive: true });
  await Promise.all(
    names.filter((name) => /\.(?:html|js|css|svg|json)$/.test(name)).map((name) => compress(join(outDir, name))),
  );
}

async function buildModule(name: string, outDir: string): Promise<void> {
  const vite = await import('vite');
  await vite.build({
    configFile: false,
    root: join(root, name),
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      rolldownOptions: {
        input: join(root, name, `${name}.ts`),
        preserveEntrySignatures: 'strict',
        output: { entryFileNames: '[name].js' },
      },
    },
  });
}

async function compress(file: string): Promise<void> {
  const content = await readFile(file);
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await Promise.all([
    promisify(brotliCompress)(content, { params }).then((compressed) => writeFile(`${file}.br`, compressed)),
    promisify(gzip)(content, { level: 9 }).then((compressed) => writeFile(`${file}.gz`, compressed)),
  ]);
}

/**
 * Replaces web/dist with the new output. If another build has finished first, its output is kept, because it was made
 * from the same files.
 */
async function replaceOutput(folder: string, version: string): Promise<void> {
  const former = `${folder}-former`;
  await rename(output, former).catch(() => undefined);
  await rename(folder, output).catch((error: unknown) => {
    if (!existsSync(join(output, version))) throw error;
  });
  await rm(former, { recursive: true, force: true });
}

function hashOf(names: string[]): string {
  const hash = createHash('sha256');
  for (const name of names.flatMap(filesOf).sort())
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(root, name)))
      .update('\0');
  return hash.digest('hex').slice(0, 16);
}

function filesOf(name: string): string[] {
  if (/\.\w+$/.test(name)) return [name];
  return readdirSync(join(root, name), { withFileTypes: true }).flatMap((entry) => filesOf(`${name}/${entry.name}`));
}

if (import.meta.main) await (process.env.NODE_ENV === 'production' ? build() : buildPages());
