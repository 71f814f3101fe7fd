// Programs that a machine may lack because npm does not install them. Test files that need a missing program are
// skipped, with one line that says so. In CI nothing is skipped, so a missing program fails the run.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

interface SystemPart {
  name: string;
  programs: string[];
  /** The support file that starts the program. Test files that import it need the program. */
  support: string;
  install: string;
}

const root = join(import.meta.dirname, '../..');
const parts: SystemPart[] = [
  { name: 'Redis', programs: ['redis-server'], support: 'test/support/redis.ts', install: 'redis-server' },
  {
    name: 'Chromium',
    programs: [process.env.CHROMIUM ?? 'chromium', 'chromium-browser', 'google-chrome'],
    support: 'test/support/chromium.ts',
    install: 'chromium',
  },
  { name: 'nginx', programs: ['nginx'], support: 'test/support/nginx.ts', install: 'nginx-light' },
  { name: 'curl', programs: ['curl'], support: 'test/support/curl-shell.ts', install: 'curl' },
  { name: 'OpenSSL', programs: ['openssl'], support: 'test/support/certificate.ts', install: 'openssl' },
];

/**
 * Returns the test files that cannot run here, as paths relative to the project root. Prints a line for each missing
 * program.
 */
export function leftOut(env: NodeJS.ProcessEnv = process.env): string[] {
  if (env.CI) return [];
  return parts.filter(isMissing).flatMap(({ name, support, install }) => {
    const files = testsThatImport(support);
    process.stderr.write(
      `${name} is not installed. Test files that need it and are left out: ${files.length}. ` +
        `apt-get install ${install}, or the like, brings it.\n`,
    );
    return files;
  });
}

function isMissing({ programs }: SystemPart): boolean {
  return programs.every((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined);
}

/** Returns the test files that import a file, directly or through other files under test/. */
export function testsThatImport(support: string): string[] {
  const files = globSync('{src,reconciler,dev,test}/**/*.ts', { cwd: root, exclude: ['test/fixtures/**'] });
  const importers = new Map<string, string[]>();
  for (const file of files) {
    if (!file.startsWith('test/') && !file.endsWith('.test.ts')) continue;
    for (const imported of importsOf(file)) importers.set(imported, [...(importers.get(imported) ?? []), file]);
  }
  const found = new Set<string>();
  const visit = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    for (const importer of importers.get(file) ?? []) visit(importer);
  };
  visit(support);
  return [...found].filter((file) => file.endsWith('.test.ts')).sort();
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const specifiers = text.matchAll(/^(?:import|export|\} from)\b[^;]*?'(\.{1,2}\/[^']+)'/gm);
  return [...specifiers].map(([, path = '']) => resolve('/', dirname(file), path).slice(1));
}
