// Which adversaries a pass lets loose, in which order and for how long: all of them one after the other in a random order,
// and then random groups at once. One seed gives one schedule.
import { adversaries } from './adversaries/adversaries.ts';
import type { Adversary } from './adversaries/adversary.ts';
import { createRandom } from './random.ts';

export interface Slot {
  adversaries: Adversary[];
  milliseconds: number;
}

export interface Pass {
  seed: string;
  slots: Slot[];
}

const shortest = 300;
const longest = 8_000;

/** `only`: names; all adversaries without it. */
export function planPass(seed: string, seconds: number, only: string[] = []): Pass {
  const random = createRandom(seed);
  const chosen = random.shuffle(adversaries.filter(({ name }) => only.length === 0 || only.includes(name)));
  const milliseconds = Math.min(Math.max((seconds * 1_000 * 0.75) / chosen.length, shortest), longest);
  const slots: Slot[] = chosen.map((adversary) => ({ adversaries: [adversary], milliseconds }));
  let left = seconds * 1_000 - chosen.length * milliseconds;
  for (; chosen.length > 1 && left > 2 * milliseconds; left -= 2 * milliseconds)
    slots.push({ adversaries: random.shuffle(chosen).slice(0, random.integer(2, 3)), milliseconds: 2 * milliseconds });
  return { seed, slots };
}

export const phaseOf = ({ adversaries: list }: Slot) => list.map(({ name }) => name).join(' + ');
