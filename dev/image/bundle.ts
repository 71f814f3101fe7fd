// Bundles the program for the image: `node dev/image/bundle.ts FOLDER`. A process that loads a few files in place of a
// thousand starts faster and needs less memory (decision 0082). The entry points keep their paths, with the ending .js.
import { cp, glob, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '../..');

/** The modules that are started as processes, or imported by their path (src/service/program-files.ts). */
const entryPoints = [
  ...['src/image/main.ts', 'src/{forms,token-handler,platform-server}/main.ts', 'reconciler/main.ts'],
  ...['src/image/*/main.ts', 'src/forms/definitions/schema-worker.ts', 'src/platform-server/tenant-code-worker.ts'],
];

/** Files that the program reads at run time. */
const files = ['package.json', 'src/*/migrations', 'web/dist'];

/** The packages that import these load them only for features that Formgate does not use. */
const unused = ['pg-cloudflare', 'pg-native', 'typescript'];

export async function bundle(folder: string): Promise<void> {
  const paths = await Array.fromAsync(glob(entryPoints, { cwd: root }));
  const built = await rolldown({
    cwd: root,
    input: Object.fromEntries(paths.map((path) => [path.replace(/\.ts$/, ''), path])),
    platform: 'node',
    external: unused,
    // An import that cannot be resolved would otherwise fail only at run time.
    onLog(level, log, handle) {
      if (level === 'warn') throw new Error(`${log.code}: ${log.message}`);
      handle(level, log);
    },
  });
  const { output } = await built.write({
    dir: folder,
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: `${chunks}/[name]-[hash].js`,
  });
  await built.close();
  for await (const path of glob(files, { cwd: root }))
    await cp(join(root, path), join(folder, path), { recursive: true });
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  await writeFile(join(folder, 'LICENSES-OF-PACKAGES'), await licences(modules));
}

/** The folder of the modules that several entry points import. */
const chunks = 'src/chunks';

/** Returns the licence texts of the packages to which these files belong. Their licences require a copy. */
async function licences(modules: readonly string[]): Promise<string> {
  const folders = new Set(modules.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const texts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const names = (await readdir(folder)).filter((name) => /^(?:licen[cs]e|notice)/i.test(name));
      const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
      const found = await Promise.all(names.sort().map((file) => readFile(join(folder, file), 'utf8')));
      return [`${name} ${version}, licence ${license}`, ...found].join('\n\n');
    }),
  );
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

const [folder] = process.argv.slice(2);
if (import.meta.main && folder !== undefined) await bundle(folder);
