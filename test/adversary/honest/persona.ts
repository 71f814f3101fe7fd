// The loop of an honest user: repeats the user's round of requests, with a short pause after a round that failed.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../random.ts';
import type { World } from '../world/world.ts';
import type { Ledger } from './ledger.ts';
import type { Recorder } from './recorder.ts';

export interface Surroundings {
  world: World;
  recorder: Recorder;
  ledger: Ledger;
  random: Random;
  signal: AbortSignal;
  /** Called when the user is set up, for example signed in, and the rounds of requests begin. */
  begin(): void;
}

/**
 * Repeats the round until the signal is aborted. Ignores errors of a round, because the recorder has already recorded
 * the failed step.
 */
export async function live(around: Surroundings, round: () => Promise<void>): Promise<void> {
  around.begin();
  while (!around.signal.aborted) {
    await round().catch(() => delay(250));
    await think(around);
  }
}

/** Waits as long as a person, or the network, needs between two requests. */
export async function think({ random }: Pick<Surroundings, 'random'>): Promise<void> {
  await delay(random.integer(30, 100));
}
