// The steps of `npm run release`. Each writes files to the output folder.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { ReleaseCommand } from './arguments.ts';
import {
  billOfMaterials,
  checksums,
  licenceReport,
  provenance,
  type Release,
  releaseNotes,
  type Subject,
  unpermitted,
} from './documents.ts';
import { imagePackages, pagePackages } from './packages.ts';

const root = resolve(import.meta.dirname, '../..');
const source = 'https://github.com/formgate/formgate';

async function run(program: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

/**
 * Reads the version and the commit of the release. Throws if the work tree has uncommitted changes, or if the chart and
 * package.json have different versions.
 */
export async function readRelease(): Promise<Release> {
  if ((await run('git', ['status', '--porcelain'])) !== '') throw new Error('The work tree has changes. Commit them.');
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  const chart = await readFile(join(root, 'charts/formgate/Chart.yaml'), 'utf8');
  for (const name of ['version', 'appVersion'])
    if (!new RegExp(`^${name}: ${version.replaceAll('.', '\\.')}$`, 'm').test(chart))
      throw new Error(`${name} of Chart.yaml is not ${version}, the version of package.json.`);
  const [revision = '', seconds = ''] = (await run('git', ['log', '-1', '--format=%H %ct'])).split(' ');
  return { version, revision, source, moment: new Date(Number(seconds) * 1_000) };
}

/**
 * Writes the release notes, the licences and the bill of materials. Returns the number of packages that they list.
 * Throws if the changelog is not ready for a release, or the licence of a package is not permitted.
 */
export async function writeDocuments(release: Release, output: string): Promise<number> {
  const read = (path: string) => readFile(join(root, path), 'utf8');
  const notes = releaseNotes(await read('CHANGELOG.md'), release.version);
  const lockFile = await read('package-lock.json');
  const packages = [...imagePackages(lockFile), ...pagePackages(lockFile)];
  const faulty = unpermitted(packages).map(({ name, licence }) => `${name} (${licence ?? 'none'})`);
  if (faulty.length > 0) throw new Error(`Licences that are not permitted: ${faulty.join(', ')}`);
  await writeFile(join(output, 'NOTES.md'), notes);
  await writeFile(join(output, 'LICENCES.md'), licenceReport(release, packages));
  await writeFile(join(output, 'bom.cdx.json'), `${JSON.stringify(billOfMaterials(release, packages), null, 2)}\n`);
  return packages.length;
}

export async function packageChart(output: string): Promise<void> {
  await run('helm', ['package', 'charts/formgate', '--destination', output]);
}

/** Writes the image as an OCI archive. */
export async function buildImage(release: Release, command: ReleaseCommand, output: string): Promise<void> {
  const { builder, builderArguments } = command;
  const { version, revision } = release;
  const tag = `formgate:${version}`;
  const args = ['--build-arg', `VERSION=${version}`, '--build-arg', `REVISION=${revision}`, ...builderArguments];
  // The time of the commit. Builders write it into the image, so that builds of the same commit have the same times.
  const time = Math.floor(release.moment.getTime() / 1_000);
  const archive = join(output, `formgate-image-${version}.tar`);
  if (builder === 'docker') {
    process.env.SOURCE_DATE_EPOCH = String(time);
    await run('docker', ['buildx', 'build', '--output', `type=oci,dest=${archive}`, '--tag', tag, ...args, '.']);
  } else {
    await run('buildah', ['bud', '--timestamp', String(time), '--tag', tag, ...args, '.']);
    await run('buildah', ['push', tag, `oci-archive:${archive}:${tag}`]);
  }
}

/** Writes the provenance and the checksums of all files in the output folder. Returns the number of files. */
export async function writeChecksums(release: Release, output: string): Promise<number> {
  const subjects: Subject[] = [];
  for (const name of (await readdir(output)).sort()) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(join(output, name)), hash);
    subjects.push({ name, sha256: hash.digest('hex') });
  }
  const statement = `${JSON.stringify(provenance(release, subjects), null, 2)}\n`;
  await writeFile(join(output, 'provenance.json'), statement);
  const sha256 = createHash('sha256').update(statement).digest('hex');
  await writeFile(join(output, 'SHA256SUMS'), checksums([...subjects, { name: 'provenance.json', sha256 }]));
  return subjects.length + 1;
}

export async function sign(key: string, output: string): Promise<void> {
  const sums = join(output, 'SHA256SUMS');
  await run('gpg', ['--batch', '--local-user', key, '--armor', '--output', `${sums}.asc`, '--detach-sign', sums]);
}
