// Writes docs/soak.md from the figures of a run.
import { written } from '../bench/statistics.ts';
import { quantities, type Series } from './judge.ts';
import { warmUpShare } from './probes.ts';
import type { SoakResult } from './run.ts';
import { trendOf } from './trend.ts';

export interface RunFacts extends SoakResult {
  minutes: number;
  seed: string;
  commit: string;
  machine: string;
}

export function soakPage(facts: RunFacts): string {
  const { minutes, seed, commit, machine, capacity, rate, load, requests, counts, slowestRecovery, series } = facts;
  const found = facts.problems.map((problem) => `- ${problem}`).join('\n');
  return `# Soak

\`npm run soak -- --minutes ${minutes} --seed ${seed} --page\` wrote this page, at commit ${commit}, on ${machine}.

Two replicas of each process serve the [honest users](limits.md) of \`npm run test:adversary\`. They also serve a steady
load of saves and proxied requests, at half of their capacity (${rate.toFixed(0)} of ${capacity.toFixed(0)} requests per
second). At the same time, faults happen in networks and stores, as in [faults](faults.md). The connections to the identity
provider have no faults: a refresh whose outcome is unknown would end its session, and the users of this run do not sign in
again. The second replica of each process is replaced again and again, as in a rollout, and the reconciler locks and deletes
overdue drafts. The key ring is rotated before and after the measured time. The first replica of each process runs from the
beginning to the end. It is measured every 5 s, and its memory every minute, after a garbage collection.

| | |
| --- | --- |
| measured time | ${minutes} minutes |
| requests | ${requests}, of which ${counts.failed} were not served: all of them during faults, or because a deploy ended an event stream, except those listed below |
| requests of the steady load that were not sent, because 100 others waited | ${load.leftOut} of ${load.sent + load.leftOut} |
| faults | ${counts.faults}; slowest recovery ${(slowestRecovery.milliseconds / 1_000).toFixed(1)} s, after ${slowestRecovery.fault} |
| deploys of a replica, rotations of the key ring | ${counts.deploys}, ${counts.rotations} |
| runs of the reconciler | ${counts.expiryRuns} |

${found === '' ? 'Every invariant held: no process exited, no save was lost, nobody was signed out, and nothing grew.' : `Invariants that do not hold:\n\n${found}`}

A slope is the change per hour, with its 95 % confidence interval. A quantity counts as grown if, with 95 % confidence, it
grew in this run by more than a limit: a tenth of its mean (memory, descriptors, handles, connections) or a quarter (delay
and latency), but never less than a small fixed amount. The first ${(minutes * warmUpShare).toFixed(0)} minutes are left
out, because the memory of a new process grows while it compiles its code.

| process | quantity | mean | slope per hour |
| --- | --- | --- | --- |
${series.toSorted(byQuantity).map(row).join('\n')}
`;
}

const order = Object.keys(quantities);
const byQuantity = (one: Series, other: Series) => order.indexOf(one.quantity) - order.indexOf(other.quantity);

function row({ process, quantity, points }: Series): string {
  const { mean, slope } = trendOf(points);
  const { unit } = quantities[quantity];
  return `| ${process} | ${quantity} | ${`${mean.toFixed(1)} ${unit}`.trim()} | ${written(slope, 1)} |`;
}
