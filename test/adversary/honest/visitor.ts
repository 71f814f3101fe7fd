// A person who signs in, reads who is signed in, and signs out again, repeatedly.
import { setTimeout as delay } from 'node:timers/promises';
import { clientId, SignInFailure, signIn } from '../world/sign-in.ts';
import { live, type Surroundings } from './persona.ts';
import { mustSee, Unserved } from './recorder.ts';
import { createSender, describeProblem } from './requests.ts';

const patience = 15_000;

export async function liveAsVisitor(around: Surroundings, email: string): Promise<void> {
  const { recorder, world } = around;
  const site = world.addresses.fronts['token-handler'];
  await live(around, async () => {
    const began = performance.now();
    const person = await signIn(site, email, 'demo', (step) => recorder.measure('sign-in', () => inTime(step()))).catch(
      (error: Error) => {
        // Failed steps are already recorded; other errors come from the identity provider or its pages.
        if (error instanceof Unserved) throw error;
        recorder.fail({ kind: 'sign-in', what: error.message, status: 0, hasRetryAfter: false, isWrong: false }, began);
        throw error;
      },
    );
    const { send, close } = createSender({ cookie: person.cookie, 'x-forwarded-for': '10.4.0.1' });
    try {
      const sessions = `${site}/token-handler/v1/sessions`;
      await recorder.measure('sessions', async () => {
        const { json } = await send(sessions);
        mustSee((json as { email?: string }[])[0]?.email === email, 'the new session belongs to another person');
      });
      await recorder.measure('sessions', () =>
        send(`${site}/token-handler/v1/clients/${clientId}/logout`, { expect: 302 }),
      );
      await recorder.measure('sessions', () => send(sessions, { expect: 401 }));
    } finally {
      close();
    }
    await delay(500);
  });
}

async function inTime<T>(signingIn: Promise<T>): Promise<T> {
  const late = delay(patience, undefined, { ref: false }).then(() => {
    throw new Unserved(`a step of a sign-in took longer than ${patience / 1_000} s`);
  });
  try {
    return await Promise.race([signingIn, late]);
  } catch (error) {
    if (!(error instanceof SignInFailure)) throw error;
    const { status, headers, text } = error;
    const what = `sign-in got ${describeProblem(status, text)}`;
    throw new Unserved(what, { status, hasRetryAfter: headers.has('retry-after') });
  }
}
