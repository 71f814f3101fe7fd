// `npm run release`: builds the files of a release. It publishes nothing.
import { mkdir, readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { help, parseReleaseArguments, UsageError } from './arguments.ts';
import { buildImage, packageChart, readRelease, sign, writeChecksums, writeDocuments } from './build.ts';

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const command = parseReleaseArguments(process.argv.slice(2));
  if (!command) return print(help);
  const output = resolve(command.output);
  await mkdir(output, { recursive: true });
  if ((await readdir(output)).length > 0) throw new UsageError(`${command.output} is not empty.`);
  const release = await readRelease();
  print(`Formgate ${release.version}, commit ${release.revision}`);
  print(`documents: ${await writeDocuments(release, output)} packages`);
  await packageChart(output);
  print('chart: packaged');
  if (command.builder === 'none') print('image: left out');
  else {
    await buildImage(release, command, output);
    print('image: built');
  }
  print(`checksums: ${await writeChecksums(release, output)} files`);
  if (command.key !== undefined) {
    await sign(command.key, output);
    print('signature: SHA256SUMS.asc');
  }
  print(`${command.output} has the files. docs/releases.md says how to publish and verify them.`);
}

try {
  await main();
} catch (error) {
  const { stderr = '', message } = error as Error & { stderr?: string };
  process.stderr.write(`${stderr.trim() || message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
