// Tests the functions that generate the documents of a release, with the repository's package-lock.json and with small
// lock files.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseReleaseArguments } from './arguments.ts';
import { billOfMaterials, checksums, licenceReport, provenance, releaseNotes, unpermitted } from './documents.ts';
import { imagePackages, type Package, pagePackages } from './packages.ts';

const release = {
  version: '1.2.3',
  revision: 'a'.repeat(40),
  source: 'https://example.org/formgate',
  moment: new Date('2026-11-23T12:00:00Z'),
};
const lockFile = readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8');
const integrity = `sha512-${Buffer.alloc(64, 1).toString('base64')}`;
const lock = (packages: object) => JSON.stringify({ packages });

it('the packages of the image are those that npm installs for production', () => {
  const packages = imagePackages(
    lock({
      '': { dependencies: { a: '1' } },
      web: { name: 'formgate-web', devDependencies: {} },
      'node_modules/formgate-web': { link: true },
      'node_modules/a': { version: '1.0.0', integrity, license: 'MIT' },
      'node_modules/a/node_modules/@b/c': { version: '2.0.0', integrity },
      'node_modules/d/node_modules/@b/c': { version: '2.0.0', integrity },
      'node_modules/e': { version: '1.0.0', integrity, dev: true },
      'node_modules/f': { version: '1.0.0', integrity, optional: true },
      'node_modules/g': { version: '1.0.0', integrity, peer: true },
    }),
  );
  const sha512 = '01'.repeat(64);
  expect(packages).toEqual([
    { name: '@b/c', version: '2.0.0', licence: undefined, sha512 },
    { name: 'a', version: '1.0.0', licence: 'MIT', sha512 },
  ]);
});

it('a package without a checksum is refused', () => {
  expect(() => imagePackages(lock({ 'node_modules/a': { version: '1.0.0' } }))).toThrow('SHA-512 of node_modules/a');
});

it('the image of this repository has express and pg, and no tool for tests; the pages have preact', () => {
  const names = imagePackages(lockFile).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['express', 'pg', 'openid-client']));
  for (const name of ['vitest', 'vite', 'typescript', 'oidc-provider']) expect(names).not.toContain(name);
  const pages = pagePackages(lockFile).map(({ name }) => name);
  // The pages also contain the dependencies of their packages, such as lodash, a dependency of @jsonforms/core.
  expect(pages).toEqual(expect.arrayContaining(['preact', 'lodash']));
  for (const name of ['rolldown', 'react']) expect(pages).not.toContain(name);
});

it('every licence in the image and in the pages is permitted', () => {
  expect(unpermitted([...imagePackages(lockFile), ...pagePackages(lockFile)])).toEqual([]);
});

it('every licence must be permitted; of alternative licences, one must be', () => {
  const of = (licence: string | undefined): Package => ({ name: String(licence), version: '1', licence, sha512: '' });
  const licences = ['MIT', '(MIT OR GPL-3.0)', 'MIT AND ISC', 'GPL-3.0', 'MIT AND GPL-3.0', undefined];
  expect(unpermitted(licences.map(of)).map(({ name }) => name)).toEqual(['GPL-3.0', 'MIT AND GPL-3.0', 'undefined']);
});

it.each([
  ['(MIT OR GPL-3.0) AND GPL-3.0', false],
  ['(MIT OR GPL-3.0) AND ISC', true],
  ['GPL-3.0 OR (MIT AND (ISC OR GPL-3.0))', true],
  ['(GPL-3.0 OR (MIT AND GPL-3.0))', false],
  ['MIT OR GPL-3.0 AND GPL-2.0', true],
  ['GPL-3.0 OR MIT AND GPL-2.0', false],
  ['Apache-2.0 WITH LLVM-exception', false],
  ['(MIT', false],
  ['MIT)', false],
  ['()', false],
  ['SEE LICENSE IN LICENSE', false],
])('%s is permitted: %s', (licence, isPermitted) => {
  const found = unpermitted([{ name: 'a', version: '1', licence, sha512: '' }]);
  expect(found).toHaveLength(isPermitted ? 0 : 1);
});

it('the bill of materials names each package with its checksum', () => {
  const packages = [{ name: '@b/c', version: '2.0.0', licence: 'ISC', sha512: '01' }];
  expect(billOfMaterials(release, packages)).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    metadata: { timestamp: '2026-11-23T12:00:00.000Z', component: { name: 'formgate', version: '1.2.3' } },
    components: [
      {
        type: 'library',
        name: '@b/c',
        purl: 'pkg:npm/%40b/c@2.0.0',
        licenses: [{ expression: 'ISC' }],
        hashes: [{ alg: 'SHA-512', content: '01' }],
      },
    ],
  });
});

it('the licences are listed with their packages', () => {
  const packages = [
    { name: 'a', version: '1.0.0', licence: 'MIT', sha512: '' },
    { name: 'b', version: '2.0.0', licence: 'ISC', sha512: '' },
  ];
  expect(licenceReport(release, packages)).toContain('## ISC\n\n- b 2.0.0\n\n## MIT\n\n- a 1.0.0\n');
});

it('the notes are the section of the version', () => {
  const changelog =
    '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-12-01\n\n### Added\n\n- A thing.\n\n## [1.2.2]\n\n- Old.\n';
  expect(releaseNotes(changelog, '1.2.3')).toBe('# Formgate 1.2.3 - 2026-12-01\n\n### Added\n\n- A thing.\n');
  expect(() => releaseNotes(changelog, '2.0.0')).toThrow('no section [2.0.0]');
  expect(() => releaseNotes(changelog.replace('[Unreleased]\n', '[Unreleased]\n\n- New.\n'), '1.2.3')).toThrow(
    'unreleased changes',
  );
});

it('provenance and checksums name every file', () => {
  const subjects = [{ name: 'formgate-1.2.3.tgz', sha256: 'b'.repeat(64) }];
  expect(provenance(release, subjects)).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'formgate-1.2.3.tgz', digest: { sha256: 'b'.repeat(64) } }],
    predicate: { buildDefinition: { resolvedDependencies: [{ digest: { gitCommit: 'a'.repeat(40) } }] } },
  });
  expect(checksums(subjects)).toBe(`${'b'.repeat(64)}  formgate-1.2.3.tgz\n`);
});

it('arguments are checked', () => {
  expect(parseReleaseArguments([])).toEqual({
    output: 'release',
    builder: 'docker',
    builderArguments: [],
    key: undefined,
  });
  const more = ['--builder', 'buildah', '--sign', 'K', '--', '--build-arg', 'A=B'];
  expect(parseReleaseArguments(more)).toMatchObject({
    builder: 'buildah',
    key: 'K',
    builderArguments: ['--build-arg', 'A=B'],
  });
  expect(parseReleaseArguments(['--help'])).toBeUndefined();
  for (const wrong of [
    ['--builder', 'podman'],
    ['--outptu', 'x'],
  ])
    expect(() => parseReleaseArguments(wrong)).toThrow('See --help.');
});
