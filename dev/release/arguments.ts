// Parses the arguments of `npm run release`.
import { parseArgs } from 'node:util';

export interface ReleaseCommand {
  /** Output folder of the release; it must be empty or missing. */
  output: string;
  /** Program that builds the image; `none` leaves the image out. */
  builder: 'docker' | 'buildah' | 'none';
  /** Further arguments of the builder program, such as `--build-arg BUILD_IMAGE=…`. */
  builderArguments: string[];
  /** Key for `gpg --local-user`. If undefined, nothing is signed. */
  key: string | undefined;
}

/** Thrown for invalid arguments. The message is printed on one line, without a stack. */
export class UsageError extends Error {}

export const help = `Builds the files of a release from the commit that is checked out: the image (an OCI archive), the chart, a bill of
materials, the licences, the notes from CHANGELOG.md, the provenance, and checksums of all of them. It publishes nothing.
docs/releases.md says what each file is, and how to verify it.

Usage: npm run release -- [--output DIR] [--builder docker|buildah|none] [--sign KEY] [-- ARGUMENTS OF THE BUILDER]

  --output DIR     folder for the files, empty or missing (release)
  --builder NAME   program that builds the image (docker); none leaves the image out
  --sign KEY       signs SHA256SUMS with this key of gpg

Needs git and helm, and a work tree without changes. Exit code 0; 1 if a step fails; 2 for invalid arguments.`;

/** Parses the arguments. Returns undefined if help is requested. Throws UsageError for invalid arguments. */
export function parseReleaseArguments(args: string[]): ReleaseCommand | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const { output = 'release', builder = 'docker', sign: key } = values;
  if (builder !== 'docker' && builder !== 'buildah' && builder !== 'none')
    throw new UsageError('--builder must be docker, buildah or none. See --help.');
  return { output, builder, builderArguments: positionals, key };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        output: { type: 'string' },
        builder: { type: 'string' },
        sign: { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error} See --help.`);
  }
}
