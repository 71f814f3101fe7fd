// A short run of `npm run test:adversary`: every adversary, several of them concurrently, for some seconds. The long
// run also repeats the seeds of seeds.json.
import { randomBytes } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { run } from './run.ts';
import { planPass } from './schedule.ts';

const seed = process.env.ADVERSARY_SEED ?? randomBytes(6).toString('hex');

it('honest users are served while adversaries attack two replicas of each process, and all resources are released', {
  timeout: 600_000,
}, async () => {
  const lines: string[] = [];
  const slots = planPass(seed, 5, { together: 4 });
  const problems = await run({
    administratorUrl: inject('postgresUrl'),
    slots,
    baseline: 2_000,
    // A p99 below this floor never counts as too slow. The floor is higher than that of the long run, because other
    // test files keep the machine busy.
    floor: 5_000,
    settling: 45_000,
    print: (line) => void lines.push(line),
  });
  expect(problems, `ADVERSARY_SEED=${seed}\n${lines.join('\n')}`).toEqual([]);
});
