// Tests the memory of a process whose standard output is not read, and what its log says about lost lines.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';

const lines = 100_000;
const lineLength = 4_000;
const file = (name: string) => JSON.stringify(join(import.meta.dirname, name));
/** Writes 400 MB of log lines, then the memory that this took to standard error, and waits for the end of its input. */
const script = `
import { createLogger } from ${file('log.ts')};
import { createMetrics } from ${file('metrics.ts')};
const { registry } = createMetrics();
const log = createLogger({ name: 'test', level: 'info' });
const before = process.memoryUsage.rss();
let most = 0;
for (let line = 0; line < ${lines}; line += 1) {
  log.info({ text: 'x'.repeat(${lineLength}) }, 'written');
  if (line % 100 > 0) continue;
  most = Math.max(most, process.memoryUsage.rss());
  await new Promise(setImmediate);
}
const metric = await registry.getSingleMetricAsString('formgate_log_lines_dropped_total');
process.stderr.end(JSON.stringify({ growth: most - before, dropped: Number(/_total (\\d+)$/m.exec(metric)?.[1]) }));
process.stdin.resume();
`;

it('a process whose log is not read keeps its memory, and then says how many lines were lost', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const { growth, dropped } = JSON.parse(await text(child.stderr)) as { growth: number; dropped: number };
  expect(growth).toBeLessThan(200 * 1_048_576);
  expect(dropped).toBeGreaterThan(lines / 2);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  await expect.poll(() => output, { timeout: 60_000 }).toContain('"msg":"log lines dropped"}\n');
  child.stdin.end();
  await once(child, 'close');
  const written = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(written.at(-1)).toMatchObject({ level: 'error', msg: 'log lines dropped', lines: dropped });
  expect(written).toHaveLength(lines - dropped + 1);
});
