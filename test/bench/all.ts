// `npm run bench -- all`: runs the benches that have goals, one after the other, and adds a report to docs/benchmarks.
import { currentLoad, describeRun, type Section, writeReport } from './bench-report.ts';
import { benchExpiry } from './expiry.ts';
import type { Figure } from './figures.ts';
import { benchForms } from './forms.ts';
import { benchProxy } from './proxy.ts';
import { benchStart } from './start.ts';

const parts: [bench: string, run: () => Promise<Figure[]>][] = [
  ['start', benchStart],
  ['proxy', benchProxy],
  ['forms', benchForms],
  ['expiry', benchExpiry],
];

export async function benchAll(): Promise<void> {
  const [started, loadBefore] = [new Date(), currentLoad()];
  const sections: Section[] = [];
  for (const [index, [bench, run]] of parts.entries()) {
    const passed = Math.round((Date.now() - started.getTime()) / 1_000);
    console.error(`${bench}: bench ${index + 1} of ${parts.length}, ${passed} s after the start`);
    // If a bench fails, the report still contains the figures of the others.
    const failed = (error: unknown): Section => ({ bench, figures: [], failure: `Not measured: ${error}` });
    sections.push(await run().then((figures) => ({ bench, figures }), failed));
  }
  const name = await writeReport(await describeRun(started, loadBefore, sections));
  console.log(`\nReport: docs/benchmarks/${name}.md`);
}
