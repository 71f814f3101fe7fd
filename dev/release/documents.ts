// The documents of a release: bill of materials, licences, notes and provenance. Each is generated only from the commit
// and its files, so the same commit gives the same documents.
import type { Package } from './packages.ts';

export interface Release {
  version: string;
  /** Id of the git commit: 40 hexadecimal digits. */
  revision: string;
  /** URL of the repository, as in the image's label. */
  source: string;
  /** Time of the commit. */
  moment: Date;
}

/** Returns a CycloneDX 1.6 document (ECMA-424) of the packages in the image and in the pages. */
export function billOfMaterials({ version, revision, moment }: Release, packages: Package[]): object {
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: moment.toISOString(),
      component: {
        'bom-ref': `formgate@${version}`,
        type: 'application',
        name: 'formgate',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        properties: [{ name: 'formgate:revision', value: revision }],
      },
    },
    components: packages.map(({ name, version: ofPackage, licence, sha512 }) => ({
      'bom-ref': purlOf(name, ofPackage),
      type: 'library',
      name,
      version: ofPackage,
      ...(licence !== undefined && { licenses: [{ expression: licence }] }),
      hashes: [{ alg: 'SHA-512', content: sha512 }],
      purl: purlOf(name, ofPackage),
    })),
  };
}

/** Returns a package URL (purl specification, type npm). The `@` of a scope is percent-encoded. */
function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;
}

/**
 * Licences that the packages of the image may have. Any other licence needs a decision, because it may impose
 * obligations on users of the image.
 */
const permittedLicences: ReadonlySet<string> = new Set([
  ...['MIT', 'MIT-0', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0', 'Unlicense'],
  ...['Python-2.0', 'PSF-2.0', 'CC0-1.0'],
]);

/** Returns the packages whose licence is missing or not permitted. */
export function unpermitted(packages: Package[]): Package[] {
  return packages.filter(({ licence = '' }) => !isPermitted(licence));
}

/**
 * True if the SPDX expression is permitted. An `OR` needs one permitted licence, an `AND` needs both, and `AND` binds
 * more strongly. Parentheses are evaluated first and replaced by `MIT`, which is permitted, or by `NONE`.
 */
function isPermitted(expression: string): boolean {
  const inner = /\(([^()]*)\)/.exec(expression);
  if (inner) return isPermitted(expression.replace(inner[0], isPermitted(inner[1] ?? '') ? 'MIT' : 'NONE'));
  return expression.split(' OR ').some((choice) => choice.split(' AND ').every((one) => permittedLicences.has(one)));
}

/** Returns a Markdown page that lists the packages, grouped by licence. */
export function licenceReport({ version }: Release, packages: Package[]): string {
  const byLicence = Map.groupBy(packages, ({ licence = 'none declared' }) => licence);
  const sections = [...byLicence]
    .sort(([a], [b]) => a.localeCompare(b, 'en'))
    .map(
      ([licence, items]) => `## ${licence}\n\n${items.map(({ name, version: v }) => `- ${name} ${v}`).join('\n')}\n`,
    );
  const introduction = `Formgate is under the Apache License 2.0. The image and the pages contain these packages.\n`;
  return [`# Licences of Formgate ${version}\n`, introduction, ...sections].join('\n');
}

/**
 * Returns the section of the version in the changelog. Throws if the changelog has no such section, or if it lists
 * unreleased changes.
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const find = (title: string) => sections.find((section) => section.startsWith(`[${title}]`));
  const unreleased = find('Unreleased')?.split('\n').slice(1).join('').trim() ?? '';
  if (unreleased !== '')
    throw new Error(`CHANGELOG.md has unreleased changes. Move them to a section [${version}] first.`);
  const section = find(version);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section [${version}].`);
  const [heading = '', ...text] = section.split('\n');
  return `# Formgate ${heading.replace(/[[\]]/g, '')}\n\n${text.join('\n').trim()}\n`;
}

/** A file of the release and its SHA-256 in lower-case hexadecimal. */
export interface Subject {
  name: string;
  sha256: string;
}

/** Returns an in-toto statement (version 1) with SLSA provenance (version 1) about the files. */
export function provenance({ version, revision, source, moment }: Release, subjects: Subject[]): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${source}/blob/v${version}/docs/releases.md`,
        externalParameters: { version },
        resolvedDependencies: [{ uri: `git+${source}@refs/tags/v${version}`, digest: { gitCommit: revision } }],
      },
      runDetails: {
        builder: { id: `${source}/blob/v${version}/dev/release/main.ts` },
        metadata: { startedOn: moment.toISOString() },
      },
    },
  };
}

/** Returns the content of a checksum file for `sha256sum --check`. */
export function checksums(subjects: Subject[]): string {
  return subjects.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('');
}
