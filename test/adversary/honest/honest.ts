// All honest users of a run, who live side by side until they are told to stop.
import type { Random } from '../random.ts';
import type { World } from '../world/world.ts';
import { liveAsAdministrator } from './administrator.ts';
import { liveAsApplicant } from './applicant.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { liveAsMember } from './member.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import { liveAsVisitor } from './visitor.ts';

export interface HonestUsers {
  recorder: Recorder;
  ledger: Ledger;
  stop(): Promise<void>;
}

export function startHonestUsers(world: World, random: Random): HonestUsers {
  const stopping = new AbortController();
  const recorder = createRecorder();
  const ledger = createLedger();
  const around = { world, recorder, ledger, random, signal: stopping.signal };
  const lives = [
    liveAsApplicant(around, 1),
    liveAsApplicant(around, 2),
    liveAsAdministrator(around),
    liveAsMember(around, 'bob'),
    liveAsMember(around, 'carol'),
    liveAsVisitor(around, 'dave@example.com'),
  ];
  // A user who cannot begin is a failure of the run, reported by stop.
  const living = Promise.allSettled(lives);
  return {
    recorder,
    ledger,
    async stop() {
      stopping.abort();
      for (const life of await living) if (life.status === 'rejected') throw life.reason;
    },
  };
}
