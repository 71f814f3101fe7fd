// Tests how a code is sent: its channel, its language, how often it may be sent, and whether a failed send counts
// towards the budget.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CodeWorld,
  emailTo,
  kiosk,
  problemOf,
  startCodeWorld,
  tenantId,
} from '../../../test/support/code-world.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Applicant, Form } from '../forms/form.ts';

const minute = 60_000;

let world: CodeWorld;
beforeAll(async () => {
  world = await startCodeWorld();
});
afterAll(() => world.close());

const sends = async ({ id }: Form) =>
  (await world.pool.query('SELECT FROM code_sends WHERE form_id = $1', [id])).rowCount;
const both: Applicant = {
  channels: [
    { channel: 'sms', address: '+15550109999' },
    { channel: 'email', address: 'ana@example.org' },
  ],
};

describe('a code', () => {
  it('is sent to the applicant in English by default, and says when it expires', async () => {
    const form = await world.addForm();
    const { send, service, counted } = world.createVerification();
    const expires = new Date(world.now().getTime() + 600_000);
    expect(await send({ form })).toEqual({ channel: 'email', expires });
    expect(service.sent).toEqual([
      {
        ...{ tenantId, subscriberId: form.subscriberId, channel: 'email', address: `${form.id}@example.org` },
        ...{ language: 'en', reason: 'Use this code to open your draft.' },
      },
    ]);
    expect(counted).toEqual(['sent']);
  });

  it('is sent in the language of the form', async () => {
    const form = await world.addForm({ applicant: { ...emailTo('amelie@example.org'), language: 'fr' } });
    const { send, service } = world.createVerification();
    await send({ form });
    expect(service.sent).toMatchObject([{ language: 'fr', reason: 'Utilisez ce code pour ouvrir votre brouillon.' }]);
  });

  it('for a form without a subscriber is sent once the applicant is subscribed', async () => {
    const form = await world.addForm({ subscriberId: null });
    const { send, service } = world.createVerification();
    await send({ form });
    expect(service.sent).toMatchObject([{ subscriberId: `new subscriber of ${form.id}` }]);
  });
});

describe('a code of a form whose subscriber the notification service has lost', () => {
  const unknown = (rejection?: string) =>
    new PlatformError('notifications', 'rejected', { upstreamStatus: 404, rejection });

  it('is sent once the applicant is subscribed again, and counts once', async () => {
    const form = await world.addForm();
    const { send, service, counted } = world.createVerification({
      subscribeNow: async (formId, lost) => `${formId} again, not ${lost}`,
    });
    service.onSend = async ({ subscriberId }) => {
      if (subscriberId === form.subscriberId) throw unknown('subscriber not found');
    };
    await send({ form });
    expect(service.sent).toMatchObject([
      { subscriberId: form.subscriberId },
      { subscriberId: `${form.id} again, not ${form.subscriberId}` },
    ]);
    expect([counted, await sends(form)]).toEqual([['sent'], 1]);
  });

  it.each<[string, PlatformError, PlatformError | undefined, number]>([
    ['a 404 of a proxy says nothing about the subscriber', unknown(), undefined, 1],
    [
      'another rejection says nothing about the subscriber',
      new PlatformError('notifications', 'rejected', { upstreamStatus: 403, rejection: 'no' }),
      undefined,
      1,
    ],
    ['the applicant is subscribed again only once', unknown('no'), undefined, 2],
    [
      'a subscription whose outcome is unknown is no send',
      unknown('no'),
      new PlatformError('notifications', 'timeout'),
      1,
    ],
  ])('is not sent, and does not count: %s', async (_what, sending, subscribing, calls) => {
    const form = await world.addForm();
    const { send, service, counted } = world.createVerification({
      async subscribeNow() {
        if (subscribing) throw subscribing;
        return 'another';
      },
    });
    service.onSend = () => Promise.reject(sending);
    await expect(send({ form })).rejects.toBe(subscribing ?? sending);
    expect(service.sent).toHaveLength(calls);
    expect([counted, await sends(form)]).toEqual([['not-sent'], 0]);
  });
});

describe('the channel of a code', () => {
  it.each<[string, string[], string[] | undefined, string]>([
    ['email, if the service does not say what it serves', ['email', 'sms'], undefined, 'email'],
    ['the one that the service serves', ['email', 'sms'], ['sms'], 'sms'],
    ['the one that the operator allows', ['sms'], ['email', 'sms'], 'sms'],
    ['none, if the service serves none', ['email', 'sms'], [], 'no-channel'],
    ['none, if the operator allows another', ['sms'], ['email'], 'no-channel'],
  ])('is %s', async (_what, channels, served, expected) => {
    const { requireChannel, service } = world.createVerification({ channels });
    service.channels = served;
    const found = await problemOf(Promise.resolve().then(() => requireChannel(both)));
    expect(found?.slug ?? requireChannel(both).channel).toBe(expected);
  });

  it('is missing for an applicant without addresses, and nothing counts', async () => {
    const form = await world.addForm({ applicant: { channels: [] } });
    const { send, counted } = world.createVerification();
    expect(await problemOf(send({ form }))).toMatchObject({ slug: 'no-channel' });
    expect(counted).toEqual([]);
    expect(await sends(form)).toBe(0);
  });
});

describe('a second code', () => {
  it('is sent after a minute, and Retry-After has the whole seconds until then', async () => {
    const form = await world.addForm();
    const { send, counted, service } = world.createVerification();
    await send({ form });
    world.advance(1);
    expect(await problemOf(send({ form }))).toMatchObject({
      slug: 'too-many-requests',
      headers: { 'Retry-After': '60' },
    });
    world.advance(minute - 2);
    expect(await problemOf(send({ form }))).toMatchObject({ headers: { 'Retry-After': '1' } });
    expect([counted, service.sent.length]).toEqual([['sent'], 1]);
    world.advance(1);
    expect(await problemOf(send({ form }))).toBeUndefined();
    expect(await sends(form)).toBe(2);
  });
});

describe('the budget of a telephone number', () => {
  it.each(['15550109967', '0015550109967', '+1 (555) 010-9967'])(
    'is the same if it is written as %s',
    async (spelling) => {
      const sms = (address: string): Applicant => ({ channels: [{ channel: 'sms', address }] });
      const form = await world.addForm({ applicant: sms('+15550109967') });
      const other = await world.addForm({ applicant: sms(spelling) });
      const { send, verify } = world.createVerification();
      await send({ form });
      expect(await problemOf(send({ form: other }))).toMatchObject({ slug: 'too-many-requests' });
      for (let nth = 1; nth <= 5; nth += 1) {
        const attempt = { form: nth % 2 === 0 ? form : other, account: kiosk, code: `WRONG${nth}` };
        expect(await problemOf(verify(attempt))).toMatchObject({ slug: 'invalid-code' });
      }
      expect(await problemOf(verify({ form, account: kiosk, code: 'RIGHT' }))).toMatchObject({
        slug: 'too-many-requests',
      });
      world.advance(60 * minute);
    },
  );
});

describe('a code that is not sent', () => {
  const failing = async (error: unknown, subscriberId: string | null = 'known', outcome = 'not-sent') => {
    const form = await world.addForm({ subscriberId });
    const { send, service, counted } = world.createVerification({ subscribeNow: () => Promise.reject(error) });
    service.onSend = () => Promise.reject(error);
    const problem = await problemOf(send({ form }));
    expect(counted).toEqual([outcome]);
    // The failed send does not count, so the applicant may ask again immediately.
    expect(await sends(form)).toBe(0);
    return problem;
  };

  it.each([
    ['the service is down', new PlatformError('notifications', 'unreachable', { reason: 'ECONNREFUSED' })],
    ['the circuit is open', new PlatformError('notifications', 'open')],
    ['another service did not respond', new PlatformError('directory', 'timeout')],
    ['the subscriber is unknown', new PlatformError('notifications', 'rejected', { upstreamStatus: 404 })],
    ['a proxy redirected', new PlatformError('notifications', 'failed', { upstreamStatus: 300 })],
    ['the mail could not be delivered', new PlatformError('notifications', 'failed', { upstreamStatus: 500 })],
    ['the service is overloaded', new PlatformError('notifications', 'failed', { upstreamStatus: 429 })],
    [
      'the service took the request for incomplete',
      new PlatformError('notifications', 'failed', { upstreamStatus: 408 }),
    ],
    ['of another error', Object.assign(new Error('broken'), { kind: 'rejected', upstreamStatus: 400 })],
  ])('because %s is reported and does not count', async (_what, error) => {
    expect(await failing(error)).toBe(error);
  });

  it('because the service has no provider, or the mail server refuses the address, is undeliverable', async () => {
    const error = new PlatformError('notifications', 'rejected', { upstreamStatus: 400, rejection: 'refused' });
    expect(await failing(error, 'known', 'undeliverable')).toMatchObject({ slug: 'no-channel', cause: error });
  });

  it('because the applicant cannot be subscribed does not count either', async () => {
    const gone = new Problem('gone', 'The form was deleted.');
    expect(await failing(gone, null, 'undeliverable')).toBe(gone);
    const none = new Problem('no-channel', 'The applicant has no channel for notices.');
    expect(await failing(none, null, 'undeliverable')).toBe(none);
    const late = new PlatformError('notifications', 'timeout');
    expect(await failing(late, null)).toBe(late);
  });
});

describe('a code that may have been sent', () => {
  it.each([
    ['the service did not respond in time', new PlatformError('notifications', 'timeout')],
    ['the connection broke', new PlatformError('notifications', 'unreachable', { reason: 'ECONNRESET' })],
    ['a gateway responded with 502', new PlatformError('notifications', 'failed', { upstreamStatus: 502 })],
    ['a gateway responded with 503', new PlatformError('notifications', 'failed', { upstreamStatus: 503 })],
    ['a gateway responded with 504', new PlatformError('notifications', 'failed', { upstreamStatus: 504 })],
    ['the response was truncated', new PlatformError('notifications', 'failed', { upstreamStatus: 200 })],
  ])('because %s counts', async (_what, error) => {
    const form = await world.addForm();
    const { send, service, counted } = world.createVerification();
    service.onSend = () => Promise.reject(error);
    expect(await problemOf(send({ form }))).toBe(error);
    expect(await problemOf(send({ form }))).toMatchObject({
      slug: 'too-many-requests',
      headers: { 'Retry-After': '60' },
    });
    expect([counted, service.sent.length]).toEqual([['not-sent'], 1]);
    world.advance(minute);
    service.onSend = async () => undefined;
    expect(await problemOf(send({ form }))).toBeUndefined();
  });
});
