// All honest users of a run. They work concurrently until they are stopped.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../random.ts';
import type { World } from '../world/world.ts';
import { liveAsAdministrator } from './administrator.ts';
import { liveAsApplicant } from './applicant.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { liveAsMember } from './member.ts';
import type { Surroundings } from './persona.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import { liveAsVisitor } from './visitor.ts';

export interface HonestUsers {
  recorder: Recorder;
  ledger: Ledger;
  /**
   * Resolves when every user has begun to send requests, or has failed to begin. `stop` reports the users who failed.
   */
  begun: Promise<unknown>;
  stop(): Promise<void>;
}

/** Milliseconds that `stop` waits for each user. Longer than a user waits for any response. */
const patience = 30_000;

export function startHonestUsers(world: World, random: Random): HonestUsers {
  const stopping = new AbortController();
  const recorder = createRecorder();
  const ledger = createLedger();
  const around = { world, recorder, ledger, random, signal: stopping.signal };
  const lives: Record<string, (own: Surroundings) => Promise<void>> = {
    'first applicant': (own) => liveAsApplicant(own, 1),
    'second applicant': (own) => liveAsApplicant(own, 2),
    administrator: liveAsAdministrator,
    bob: (own) => liveAsMember(own, 'bob'),
    carol: (own) => liveAsMember(own, 'carol'),
    visitor: (own) => liveAsVisitor(own, 'dave@example.com'),
  };
  const living = new Map<string, Promise<unknown>>();
  const beginnings: Promise<unknown>[] = [];
  for (const [name, life] of Object.entries(lives)) {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    // `stop` reports a user who cannot begin.
    const ending = life({ ...around, begin }).catch((error: unknown) => error);
    living.set(name, ending);
    beginnings.push(Promise.race([begun, ending]));
  }
  return {
    recorder,
    ledger,
    begun: Promise.all(beginnings),
    async stop() {
      stopping.abort();
      for (const [name, ending] of living) {
        const late = delay(patience, new Error('did not stop'), { ref: false });
        const error = await Promise.race([ending, late]);
        if (error !== undefined) throw new Error(`The honest ${name} failed`, { cause: error });
      }
    },
  };
}
