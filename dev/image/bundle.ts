// Bundles the program for the image: `node dev/image/bundle.ts FOLDER`. A process that loads a few files instead of a
// thousand starts faster and needs less memory (decision 0082). The entry points keep their paths, with the ending .js.
import { cp, glob, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, matchesGlob } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

const root = join(import.meta.dirname, '../..');

/** The modules that are started as processes, or imported by their path (src/service/program-files.ts). */
const entryPoints = [
  ...['src/image/main.ts', 'src/{forms,token-handler,platform-server}/main.ts', 'reconciler/main.ts'],
  ...['src/image/*/main.ts', 'src/forms/definitions/schema-worker.ts', 'src/platform-server/tenant-code-worker.ts'],
];

/** Files that the program reads at run time. */
const filesAtRunTime = ['package.json', 'src/*/migrations', 'web/dist'];

/** Packages that the bundle omits. They are imported only for features that Formgate does not use. */
const unused = ['pg-cloudflare', 'pg-native', 'typescript'];

/**
 * Files of packages that are loaded with the package, but of which Formgate uses nothing. The bundle contains an empty
 * module instead, because the text and functions of each file would stay in memory.
 */
const unusedFiles = [
  // undici: test doubles, caches, interceptors, WebSocket, EventSource, forward proxies.
  'undici/lib/{mock,cache,interceptor}/*.js',
  'undici/lib/web/{websocket,eventsource}/**/*.js',
  'undici/lib/dispatcher/{balanced-pool,h2c-client,retry-agent,round-robin-pool}.js',
  'undici/lib/dispatcher/{env-http-proxy-agent,proxy-agent,socks5-proxy-agent}.js',
  // body-parser: tables of old character encodings. Bodies are JSON, forms and CSV in UTF-8.
  'iconv-lite/encodings/{dbcs,sbcs}-data*.js',
  'iconv-lite/encodings/dbcs-codec.js',
];

/** The folder in the bundle for modules that several entry points import. */
const chunks = 'src/chunks';

/**
 * Writes the bundle, the files that the program reads at run time, and the licences of the bundled packages to the
 * folder.
 */
export async function bundle(folder: string): Promise<void> {
  const paths = await Array.fromAsync(glob(entryPoints, { cwd: root }));
  const built = await rolldown({
    cwd: root,
    input: Object.fromEntries(paths.map((path) => [path.replace(/\.ts$/, ''), path])),
    platform: 'node',
    external: unused,
    plugins: [omitUnusedFiles()],
    // Each warning fails the build. Rolldown only warns about an unresolved import, which would then fail at run time.
    onLog(level, log, handle) {
      if (level === 'warn') throw new Error(`${log.code}: ${log.message}`);
      handle(level, log);
    },
  });
  const { output } = await built.write({
    dir: folder,
    comments: false,
    // V8 stores a file in two bytes for each character if it contains one that is not in Latin-1.
    charset: 'ascii',
    entryFileNames: '[name].js',
    chunkFileNames: `${chunks}/[name]-[hash].js`,
  });
  await built.close();
  for await (const path of glob(filesAtRunTime, { cwd: root }))
    await cp(join(root, path), join(folder, path), { recursive: true });
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  await writeFile(join(folder, 'LICENSES-OF-PACKAGES'), await licences(modules));
}

/**
 * Replaces the unused files with an empty module. Fails the build if a pattern matches nothing, as it does when a new
 * version of a package renames its files.
 */
function omitUnusedFiles(): Plugin {
  const unmatched = new Set(unusedFiles);
  return {
    name: 'omit-unused-files',
    load(path) {
      const [, file = ''] = /^.*node_modules\/(.*)$/.exec(path) ?? [];
      const pattern = unusedFiles.find((one) => matchesGlob(file, one));
      if (pattern === undefined) return null;
      unmatched.delete(pattern);
      return 'module.exports = {};';
    },
    buildEnd() {
      if (unmatched.size > 0) throw new Error(`no file of a package matches ${[...unmatched].join(', ')}`);
    },
  };
}

/**
 * Returns the licence texts of the packages to which these files belong. The licences require that a copy is
 * distributed.
 */
async function licences(modules: readonly string[]): Promise<string> {
  const packages = new Set(modules.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const texts = await Promise.all(
    [...packages].sort().map(async (path) => {
      const files = (await readdir(path)).filter((file) => /^(?:licen[cs]e|notice)/i.test(file));
      const { name, version, license } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'));
      const found = await Promise.all(files.sort().map((file) => readFile(join(path, file), 'utf8')));
      return [`${name} ${version}, licence ${license}`, ...found].join('\n\n');
    }),
  );
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

const [folder] = process.argv.slice(2);
if (import.meta.main && folder !== undefined) await bundle(folder);
