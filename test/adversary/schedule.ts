// Which adversaries a pass lets loose, in which order and for how long: all of them one after the other in a random order,
// and then random groups at once. One seed gives one schedule.
import { adversaries } from './adversaries/adversaries.ts';
import type { Adversary } from './adversaries/adversary.ts';
import { createRandom } from './random.ts';

export interface Slot {
  /** Of the adversaries' choices. */
  seed: string;
  adversaries: Adversary[];
  milliseconds: number;
}

const shortest = 300;
const longest = 8_000;

export interface PlanOptions {
  /** Names; all adversaries without it. */
  only?: string[];
  /** How many at once, so that a short pass has time for all of them; one after the other without it. */
  together?: number;
}

export function planPass(seed: string, seconds: number, { only = [], together = 1 }: PlanOptions = {}): Slot[] {
  const random = createRandom(seed);
  const chosen = random.shuffle(adversaries.filter(({ name }) => only.length === 0 || only.includes(name)));
  const groups = together === 1 ? chosen.map((adversary) => [adversary]) : group(chosen, together);
  // A quarter of the time is for random groups, unless they come in groups anyway.
  const share = together === 1 ? 750 : 1_000;
  const milliseconds = Math.round(Math.min(Math.max((seconds * share) / groups.length, shortest), longest));
  const slots: Slot[] = groups.map((adversaries) => ({ seed, adversaries, milliseconds }));
  let left = seconds * 1_000 - groups.length * milliseconds;
  for (; together === 1 && groups.length > 1 && left > 2 * milliseconds; left -= 2 * milliseconds)
    slots.push({
      // An adversary that comes again makes other choices.
      seed: `${seed}:${slots.length}`,
      adversaries: compatible(random.shuffle(chosen).slice(0, random.integer(2, 3))),
      milliseconds: 2 * milliseconds,
    });
  return slots;
}

/** Without those that need the database where others of the group take it away. */
function compatible(group: Adversary[]): Adversary[] {
  const hasFault = group.some(({ excuses }) => excuses !== undefined);
  return hasFault ? group.filter(({ needsDatabase }) => !needsDatabase) : group;
}

/** Those that excuse failures come together, so that they excuse little of what the others do. */
function group(chosen: Adversary[], together: number): Adversary[][] {
  const faults = chosen.filter(({ excuses }) => excuses !== undefined);
  const others = chosen.filter(({ excuses }) => excuses === undefined);
  const groups = faults.length > 0 ? [faults] : [];
  for (let first = 0; first < others.length; first += together) groups.push(others.slice(first, first + together));
  return groups;
}

export const phaseOf = ({ adversaries: list }: Slot) => list.map(({ name }) => name).join(' + ');
