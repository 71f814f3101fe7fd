// The schedule of a pass: first all adversaries one after the other in random order, then random groups of them
// concurrently. A seed determines the schedule.
import { adversaries } from './adversaries/adversaries.ts';
import type { Adversary } from './adversaries/adversary.ts';
import { createRandom } from './random.ts';

export interface Slot {
  /** Seed from which the adversaries generate their random choices. */
  seed: string;
  adversaries: Adversary[];
  milliseconds: number;
}

const shortest = 300;
const longest = 8_000;

export interface PlanOptions {
  /** Names of the adversaries to run; by default all. */
  only?: string[];
  /**
   * Number of adversaries that run concurrently; by default one. With several, even a short pass has time for all
   * adversaries.
   */
  together?: number;
}

export function planPass(seed: string, seconds: number, { only = [], together = 1 }: PlanOptions = {}): Slot[] {
  const random = createRandom(seed);
  const chosen = random.shuffle(adversaries.filter(({ name }) => only.length === 0 || only.includes(name)));
  const groups = together === 1 ? chosen.map((adversary) => [adversary]) : group(chosen, together);
  // If `together` is one, a quarter of the pass is reserved for random groups. Otherwise, all adversaries run in groups
  // anyway.
  const share = together === 1 ? 750 : 1_000;
  const milliseconds = Math.round(Math.min(Math.max((seconds * share) / groups.length, shortest), longest));
  const slots: Slot[] = groups.map((adversaries) => ({ seed, adversaries, milliseconds }));
  let left = seconds * 1_000 - groups.length * milliseconds;
  for (; together === 1 && groups.length > 1 && left > 2 * milliseconds; left -= 2 * milliseconds)
    slots.push({
      // The seed differs in each slot, so that an adversary that runs again makes other choices.
      seed: `${seed}:${slots.length}`,
      adversaries: compatible(random.shuffle(chosen).slice(0, random.integer(2, 3))),
      milliseconds: 2 * milliseconds,
    });
  return slots;
}

/**
 * Leaves out the adversaries that need the stores if another adversary of the group causes faults (has `excuses`).
 */
function compatible(group: Adversary[]): Adversary[] {
  const hasFault = group.some(({ excuses }) => excuses !== undefined);
  return hasFault ? group.filter(({ needsStores }) => !needsStores) : group;
}

/** Puts the adversaries that excuse failures into one group, so that they do not excuse failures that others cause. */
function group(chosen: Adversary[], together: number): Adversary[][] {
  const faults = chosen.filter(({ excuses }) => excuses !== undefined);
  const others = chosen.filter(({ excuses }) => excuses === undefined);
  const groups = faults.length > 0 ? [faults] : [];
  for (let first = 0; first < others.length; first += together) groups.push(others.slice(first, first + together));
  return groups;
}

export const phaseOf = ({ adversaries: list }: Slot) => list.map(({ name }) => name).join(' + ');
