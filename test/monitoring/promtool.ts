// Runs the programs of Prometheus and Alertmanager from Debian's packages `prometheus` and `prometheus-alertmanager`.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Outcome {
  code: number;
  output: string;
}

/**
 * Runs a program in a temporary folder with these files. Throws an error of one line if the program is not installed.
 */
export async function runWithFiles(
  program: 'promtool' | 'amtool',
  args: string[],
  files: Record<string, string>,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-rules-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    return await run(program, args, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function run(program: string, args: string[], cwd: string): Promise<Outcome> {
  return new Promise((done, fail) => {
    execFile(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error?.code === 'ENOENT')
        fail(new Error(`${program} is missing: install the Debian packages prometheus and prometheus-alertmanager`));
      else done({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` });
    });
  });
}
