// Tests how a code is verified: which responses of the notification service count as wrong codes, who may use a code,
// and for how long.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CodeWorld,
  emailTo,
  kiosk,
  otherKiosk,
  problemOf,
  startCodeWorld,
  tenantId,
} from '../../../test/support/code-world.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Form } from '../forms/form.ts';

const minute = 60_000;

let world: CodeWorld;
beforeAll(async () => {
  world = await startCodeWorld();
});
afterAll(() => world.close());

type Verification = ReturnType<CodeWorld['createVerification']>;
const verify = ({ verify }: Pick<Verification, 'verify'>, form: Form, code: string, account = kiosk) =>
  problemOf(verify({ form, code, account }));
const slug = async (...args: Parameters<typeof verify>) => (await verify(...args))?.slug ?? 'right';

/** Returns the stored attempts of a form. Each is wrong, undecided or unfinished. */
async function attemptsOf(form: Form) {
  const sql = 'SELECT wrong, undecided FROM code_attempts WHERE form_id = $1 ORDER BY id';
  return (await world.pool.query(sql, [form.id])).rows;
}

describe('a right code', () => {
  it('is checked once at the notification service, with the address of the applicant', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    expect(verification.service.checked).toEqual([
      {
        ...{ tenantId, subscriberId: form.subscriberId, channel: 'email', address: `${form.id}@example.org` },
        ...{ code: 'RIGHT', idempotencyKey: expect.stringMatching(/^code-attempt-\d+$/) },
      },
    ]);
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    expect(verification.service.checked).toHaveLength(1);
    expect(verification.counted).toEqual(['verified']);
    expect(await attemptsOf(form)).toEqual([]);
  });

  it('keeps working for half an hour, only for the account that used it', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    await verify(verification, form, 'RIGHT');
    world.advance(30 * minute - 1);
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    expect(await slug(verification, form, 'RIGHT', otherKiosk)).toBe('invalid-code');
    expect(await slug(verification, form, 'RIGHT', { ...kiosk, issuer: 'https://other.example' })).toBe('invalid-code');
    world.advance(1);
    expect(await slug(verification, form, 'RIGHT')).toBe('invalid-code');
    expect(verification.service.checked).toHaveLength(1);
    expect(verification.counted).toEqual(['verified', 'rejected', 'rejected', 'rejected']);
  });

  it('that two accounts try at once opens the form to one of them', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    const both = Promise.withResolvers<void>();
    verification.service.onCheck = async () => {
      if (verification.service.checked.length === 2) both.resolve();
      await both.promise;
      return true;
    };
    const accounts = [kiosk, otherKiosk];
    const slugs = await Promise.all(accounts.map((account) => slug(verification, form, 'RIGHT', account)));
    expect(slugs.sort()).toEqual(['invalid-code', 'right']);
    expect(verification.counted.sort()).toEqual(['rejected', 'verified']);
  });
});

describe('a wrong code', () => {
  it('is rejected and counts', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    expect(await slug(verification, form, 'WRONG')).toBe('invalid-code');
    expect(verification.counted).toEqual(['rejected']);
    expect(await attemptsOf(form)).toEqual([{ wrong: true, undecided: false }]);
  });

  it('may be tried five times an hour; then no code works, and Retry-After says when the next one does', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    for (let nth = 0; nth < 5; nth += 1) expect(await slug(verification, form, `WRONG${nth}`)).toBe('invalid-code');
    world.advance(1);
    expect(await verify(verification, form, 'RIGHT')).toMatchObject({
      slug: 'too-many-requests',
      headers: { 'Retry-After': '3600' },
    });
    expect(verification.counted).toEqual(Array(6).fill('rejected'));
    world.advance(60 * minute - 2);
    expect(await verify(verification, form, 'RIGHT')).toMatchObject({ headers: { 'Retry-After': '1' } });
    expect(verification.service.checked).toHaveLength(5);
    world.advance(1);
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
  });

  it.each([400, 404])(
    'counts if the notification service rejects the call with %i: it has sent no code, or does not know the subscriber',
    async (upstreamStatus) => {
      const form = await world.addForm();
      const verification = world.createVerification();
      const rejection = new PlatformError('notifications', 'rejected', { upstreamStatus });
      verification.service.onCheck = () => Promise.reject(rejection);
      expect(await slug(verification, form, 'RIGHT')).toBe('invalid-code');
      expect(await attemptsOf(form)).toEqual([{ wrong: true, undecided: false }]);
    },
  );

  it('counts for a form without a subscriber, to which no code was ever sent', async () => {
    const form = await world.addForm({ subscriberId: null });
    const verification = world.createVerification();
    expect(await slug(verification, form, 'RIGHT')).toBe('invalid-code');
    expect(verification.service.checked).toEqual([]);
    expect(await attemptsOf(form)).toEqual([{ wrong: true, undecided: false }]);
  });
});

describe('an applicant without a channel for codes', () => {
  it('has no valid code, and no call is made', async () => {
    const form = await world.addForm({ applicant: { channels: [] } });
    const verification = world.createVerification();
    expect(await slug(verification, form, 'RIGHT')).toBe('invalid-code');
    expect(verification.service.checked).toEqual([]);
    expect(verification.counted).toEqual(['rejected']);
  });

  it('gets no code for a channel that the service no longer serves', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    verification.service.channels = ['sms'];
    expect(await slug(verification, form, 'RIGHT')).toBe('invalid-code');
    expect(verification.service.checked).toEqual([]);
  });
});

describe('a check that fails', () => {
  it.each([
    ['after the service may have checked the code', new PlatformError('notifications', 'timeout'), [true]],
    ['before the service was called', new PlatformError('notifications', 'open'), []],
    ['because another service failed', new PlatformError('directory', 'timeout'), []],
    ['because a proxy rejected the call', new PlatformError('notifications', 'rejected', { upstreamStatus: 421 }), []],
    ['because the directory rejected it', new PlatformError('directory', 'rejected', { upstreamStatus: 400 }), []],
    ['for another reason', new Error('out of memory'), []],
  ])('%s is reported, and counts only if the code may have been checked', async (_when, error, undecided) => {
    const form = await world.addForm();
    const verification = world.createVerification();
    verification.service.onCheck = () => Promise.reject(error);
    expect(await verify(verification, form, 'RIGHT')).toBe(error);
    expect(await attemptsOf(form)).toEqual(undecided.map((one) => ({ wrong: false, undecided: one })));
    expect(verification.counted).toEqual([]);
  });

  it('may be repeated with the same code, also by another account, and the service counts both as one', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    const { service } = verification;
    service.onCheck = () => Promise.reject(new PlatformError('notifications', 'timeout'));
    await verify(verification, form, 'RIGHT');
    service.onCheck = async () => true;
    expect(await slug(verification, form, 'RIGHT', otherKiosk)).toBe('right');
    expect(service.checked[1]?.idempotencyKey).toBe(service.checked[0]?.idempotencyKey);
    expect(await attemptsOf(form)).toEqual([]);
  });
});

describe.each(['right', 'wrong'] as const)('a %s code whose check cannot be recorded', (outcome) => {
  it('may be entered again at once, and the service counts both as one', async () => {
    const form = await world.addForm();
    const failing = { ...world.store, settleRight: () => Promise.reject(new Error('no connection')) };
    failing.settleWrong = failing.settleRight;
    const wait = () => Promise.reject(new Error('it waits'));
    const code = outcome.toUpperCase();
    const first = world.createVerification({ store: failing, wait });
    expect(await verify(first, form, code)).toMatchObject({ message: 'no connection' });
    const second = world.createVerification({ wait });
    expect(await slug(second, form, code)).toBe(outcome === 'right' ? 'right' : 'invalid-code');
    expect(second.service.checked).toEqual(first.service.checked);
  });
});

describe('a check with an unknown outcome', () => {
  it('stays unknown if its repetition never reaches the service, which then recognises the code', async () => {
    const form = await world.addForm();
    const verification = world.createVerification();
    const { service } = verification;
    for (const kind of ['timeout', 'open'] as const) {
      service.onCheck = () => Promise.reject(new PlatformError('notifications', kind));
      await verify(verification, form, 'RIGHT');
      expect(await attemptsOf(form)).toEqual([{ wrong: false, undecided: true }]);
    }
    service.onCheck = async () => true;
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    expect(new Set(service.checked.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(service.checked).toHaveLength(3);
  });
});

describe('two requests of one account with the same code', () => {
  it('make one check: the second waits for the first, and then uses its session', async () => {
    const form = await world.addForm();
    const checked = Promise.withResolvers<boolean>();
    const waits: number[] = [];
    const verification = world.createVerification({
      async wait(milliseconds) {
        waits.push(milliseconds);
        if (waits.length < 3) return;
        checked.resolve(true);
        await first;
      },
    });
    const started = Promise.withResolvers<void>();
    verification.service.onCheck = () => {
      started.resolve();
      return checked.promise;
    };
    const first = slug(verification, form, 'RIGHT');
    await started.promise;
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    expect(await first).toBe('right');
    expect(waits).toEqual([25, 50, 100]);
    expect(verification.service.checked).toHaveLength(1);
    expect(verification.counted).toEqual(['verified']);
  });

  it('that take too long: after more than twenty seconds, the second gets 503 with Retry-After', async () => {
    const form = await world.addForm();
    const waits: number[] = [];
    const verification = world.createVerification({ wait: async (milliseconds) => void waits.push(milliseconds) });
    const [started, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
    verification.service.onCheck = () => {
      started.resolve();
      return checked.promise;
    };
    const first = slug(verification, form, 'RIGHT');
    await started.promise;
    expect(await verify(verification, form, 'RIGHT')).toMatchObject({
      slug: 'unavailable',
      headers: { 'Retry-After': '5' },
    });
    expect(waits).toEqual([25, 50, 100, 200, 400, ...Array(40).fill(500)]);
    checked.resolve(true);
    expect(await first).toBe('right');
  });

  it('a code that was checked for over a minute is right, if the account has opened the form with it meanwhile', async () => {
    const form = await world.addForm({ applicant: emailTo('slow@example.org') });
    const verification = world.createVerification();
    const [started, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
    verification.service.onCheck = () => {
      started.resolve();
      return slow.promise;
    };
    const first = slug(verification, form, 'RIGHT');
    await started.promise;
    world.advance(minute);
    verification.service.onCheck = async () => true;
    expect(await slug(verification, form, 'RIGHT')).toBe('right');
    // The second check has used up the code, so the notification service now reports to the first check that the code
    // is wrong.
    slow.resolve(false);
    expect(await first).toBe('right');
    expect(await attemptsOf(form)).toEqual([]);
  });
});
