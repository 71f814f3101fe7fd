// The invariants of a run: no process exits or blocks, honest users get documented responses, quickly and with their
// own data, and all resources are released afterwards.
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { adversaries } from './adversaries/adversaries.ts';
import type { Ledger } from './honest/ledger.ts';
import type { Failure, Sample } from './honest/recorder.ts';
import { createSender } from './honest/requests.ts';
import { latencies } from './latency.ts';
import type { Footprint, Replica } from './world/replica.ts';
import type { World } from './world/world.ts';

export const baselinePhase = 'baseline';

const among = (phase: string) => adversaries.filter(({ name }) => phase.split(' + ').includes(name));

const mostLines = 40;

/**
 * Returns a line for each kind of failure that no adversary of its phase excuses, with the number of these failures.
 */
export function judgeFailures(failures: Failure[]): string[] {
  const unexcused = failures.filter((failure) => !among(failure.phase).some(({ excuses }) => excuses?.(failure)));
  const byText = Map.groupBy(unexcused, ({ phase, kind, what }) => `${kind}: ${what} (${phase})`);
  const lines = [...byText].map(([text, list]) => (list.length > 1 ? `${text}, ${list.length} times` : text));
  if (lines.length <= mostLines) return lines;
  return [...lines.slice(0, mostLines), `and ${lines.length - mostLines} other kinds of failures of honest requests`];
}

/**
 * Compares the p99 of each group of requests with the p99 of the baseline. Reports a group if the confidence intervals
 * show that adversaries more than triple its p99. A p99 below `floor` milliseconds is never too slow, because a busy
 * machine alone can cause it.
 */
export function judgeLatency(samples: Sample[], floor: number): string[] {
  const baseline = latencies(samples, (phase) => phase === baselinePhase);
  const attacked = latencies(samples, (phase) => {
    const present = among(phase);
    return present.length > 0 && present.every(({ excuses }) => excuses === undefined);
  });
  return Object.entries(attacked).flatMap(([group, { count, p99, p99Interval }]) => {
    const limit = Math.max(3 * (baseline[group]?.p99Interval[1] ?? 0), floor);
    if (count === 0 || p99Interval[0] <= limit) return [];
    const slow = slowPhases(samples, (phase) => latencies(samples, (each) => each === phase)[group]?.p99 ?? 0, limit);
    const without = baseline[group]?.p99.toFixed(0);
    return [`p99 of ${group}: ${p99.toFixed(0)} ms with adversaries, ${without} ms without (${slow})`];
  });
}

/** Returns the phases with a p99 above `limit`, slowest first. */
function slowPhases(samples: Sample[], p99Of: (phase: string) => number, limit: number): string {
  return [...new Set(samples.map(({ phase }) => phase))]
    .map((phase) => ({ phase, p99: p99Of(phase) }))
    .filter(({ phase, p99 }) => p99 > limit && among(phase).length > 0)
    .toSorted((one, other) => other.p99 - one.p99)
    .slice(0, 5)
    .map(({ phase, p99 }) => `${p99.toFixed(0)} ms: ${phase}`)
    .join('; ');
}

export type Footprints = Map<Replica, Footprint>;

export async function measure(replicas: Replica[]): Promise<Footprints> {
  const entries = await Promise.all(
    replicas.map(async (replica) => [replica, await replica.footprint().catch(() => undefined)] as const),
  );
  return new Map(entries.filter((entry): entry is [Replica, Footprint] => entry[1] !== undefined));
}

const mebibyte = 1024 * 1024;

/**
 * Waits at most `patience` milliseconds until the footprints (memory and file descriptors) of all replicas are close to
 * the baseline. Then reports each replica that still exceeds the limits in `compare`.
 */
export async function judgeFootprints(baseline: Footprints, replicas: Replica[], patience: number): Promise<string[]> {
  for (const deadline = Date.now() + patience; ; await delay(2_000)) {
    const now = await measure(replicas);
    const problems = replicas.flatMap((replica) => compare(replica, baseline.get(replica), now.get(replica)));
    if (problems.length === 0 || Date.now() > deadline) return problems;
  }
}

function compare({ place }: Replica, before: Footprint | undefined, after: Footprint | undefined): string[] {
  if (!before) return [];
  if (!after) return [`${place.name} does not respond after the adversaries have stopped`];
  const rows: [what: string, before: number, after: number, limit: number][] = [
    ['descriptors', before.descriptors, after.descriptors, before.descriptors + 30],
    ['MiB of live memory', mib(before.liveBytes), mib(after.liveBytes), mib(before.liveBytes) * 1.3 + 24],
    ['MiB resident', mib(before.residentBytes), mib(after.residentBytes), mib(before.residentBytes) * 1.6 + 96],
  ];
  return rows.flatMap(([what, from, to, limit]) =>
    to > limit ? [`${place.name}: ${what} rose from ${Math.round(from)} to ${Math.round(to)}`] : [],
  );
}

const mib = (bytes: number) => bytes / mebibyte;

const readable = { tries: 5, pause: 1_000 };

/**
 * Checks that every form contains the data of its last acknowledged save, or of a later save with an unknown outcome.
 */
export async function judgeLedger(ledger: Ledger, { addresses }: World): Promise<string[]> {
  const { send, close } = createSender({ authorization: `Bearer ${addresses.tokens.administrator}` });
  const problems: string[] = [];
  for (const [id, possible] of ledger.entries()) {
    const found = await readForm(id).catch((error: Error) => error);
    if (found instanceof Error) problems.push(`the form ${id} could not be read back: ${found.message}`);
    else if (!possible.some((candidate) => isDeepStrictEqual(candidate, found.data)))
      problems.push(
        `the form ${id} lost an acknowledged save: it contains ${JSON.stringify(found.data).slice(0, 200)}`,
      );
  }
  close();
  return problems;

  async function readForm(id: string): Promise<{ data?: unknown }> {
    for (let failures = 0; ; await delay(readable.pause))
      try {
        const { json } = await send(`${addresses.fronts.forms}/form/v1/forms/${id}/data`);
        return json as { data?: unknown };
      } catch (error) {
        failures += 1;
        if (failures === readable.tries) throw error;
      }
  }
}
