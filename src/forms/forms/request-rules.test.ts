// Tests from which part of a request the service reads a code, how many large bodies a caller may send, and how many
// forms a caller may create.
import { describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createExchange, refusal } from '../../../test/support/express-exchange.ts';
import type { Caller } from '../../service/auth/identity.ts';
import { createRateLimits } from '../../service/limits/rate-limit.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { codeOf } from './access.ts';
import { creationLimits, largeCreates } from './creation-limits.ts';

const issuer = 'https://access.example.org/auth/realms/demo';
const caller = (subject: string, ...roles: string[]): Caller => ({
  ...{ subject, name: subject, issuer, realm: 'demo', clientId: 'app', isCore: false },
  roles: new Set(roles),
});
const creator = caller('carla', 'visitor');

describe('the code of a request', () => {
  const code = (header: string | undefined, query?: string) =>
    codeOf(createExchange({ headers: header === undefined ? {} : { 'x-form-code': header } }).request, query);

  it.each([
    ['AB12', undefined, 'AB12'],
    ['AB12', 'CD34', 'AB12'],
    [undefined, 'CD34', 'CD34'],
    ['', 'CD34', 'CD34'],
    [' AB12 ', undefined, 'AB12'],
    ['  ', undefined, undefined],
    [undefined, '', undefined],
    [undefined, undefined, undefined],
  ])('with the header %j and the query %j is %j', (header, query, expected) => {
    expect(code(header, query)).toBe(expected);
  });

  it('has at most 64 characters, without the spaces around it', () => {
    expect(code(` ${'X'.repeat(64)} `)).toBe('X'.repeat(64));
    expect(() => code('x'.repeat(65))).toThrow(
      expect.objectContaining({ errors: [{ pointer: '/headers/x-form-code', detail: 'is too long' }] }),
    );
    expect(() => code(undefined, 'x'.repeat(65))).toThrow(expect.objectContaining({ slug: 'invalid-request' }));
  });
});

describe('creates with large bodies', () => {
  function createGuard() {
    let moment = 0;
    const { log } = captureLog();
    const guard = largeCreates(createRateLimits({ clock: () => new Date(moment), log, metrics: createMetrics() }));
    const send = async (headers: Record<string, string>, who = creator) =>
      (await refusal(guard, createExchange({ method: 'POST', headers, locals: { caller: who } })))?.slug ?? 'passes';
    return {
      guard,
      send,
      advance: (milliseconds: number) => {
        moment += milliseconds;
      },
      async spend(who = creator) {
        for (let nth = 0; nth < 30; nth += 1) expect(await send({ 'content-length': '16385' }, who)).toBe('passes');
      },
    };
  }

  it('are limited to thirty a minute', async () => {
    const { guard, send, advance, spend } = createGuard();
    expect(guard.name).toBe('rateLimit(large-creates)');
    await spend();
    expect(await send({ 'content-length': '16385' })).toBe('too-many-requests');
    advance(59_999);
    expect(await send({ 'content-length': '16385' })).toBe('too-many-requests');
    advance(1);
    expect(await send({ 'content-length': '16385' })).toBe('passes');
  });

  it.each<[string, Record<string, string>, string]>([
    ['of 16 KiB', { 'content-length': '16384' }, 'passes'],
    ['of 16 KiB and a byte', { 'content-length': '16385' }, 'too-many-requests'],
    ['of unknown length', { 'transfer-encoding': 'chunked' }, 'too-many-requests'],
    ['that is compressed', { 'content-length': '100', 'content-encoding': 'gzip' }, 'too-many-requests'],
    ['that is empty', { 'content-length': '0' }, 'passes'],
    ['that is missing', {}, 'passes'],
    ['that is missing, but said to be compressed', { 'content-encoding': 'gzip' }, 'passes'],
  ])('count a body %s: %s', async (_what, headers, expected) => {
    const { send, spend } = createGuard();
    await spend();
    expect(await send(headers)).toBe(expected);
  });

  it('are counted for each account, and not for intake applications', async () => {
    const { send, spend } = createGuard();
    await spend();
    const large = { 'content-length': '16385' };
    expect(await send(large, caller('otto'))).toBe('passes');
    expect(await send(large, { ...creator, issuer: 'https://other.example.org' })).toBe('passes');
    expect(await send(large, caller('carla', 'intake-application'))).toBe('passes');
    expect(await send(large)).toBe('too-many-requests');
  });

  it('do not count together for accounts whose issuer and subject are the same text when joined', async () => {
    const { send, spend } = createGuard();
    await spend({ ...creator, issuer: 'https://a.example/realms/x', subject: 'y' });
    const other = { ...creator, issuer: 'https://a.example/realms/', subject: 'xy' };
    expect(await send({ 'content-length': '16385' }, other)).toBe('passes');
  });
});

describe('created forms', () => {
  function createCounter() {
    let moment = 0;
    const { log } = captureLog();
    const limits = createRateLimits({ clock: () => new Date(moment), log, metrics: createMetrics() });
    const { countCreate } = creationLimits(limits);
    return {
      countCreate,
      spend: (who: Caller) => Array.from({ length: 60 }, () => countCreate(who)),
      advance: (milliseconds: number) => {
        moment += milliseconds;
      },
    };
  }
  const tooMany = (seconds: number) =>
    expect.objectContaining({ slug: 'too-many-requests', headers: { 'Retry-After': String(seconds) } });

  it('are limited to sixty an hour, with the wait until the hour is over', () => {
    const { countCreate, spend, advance } = createCounter();
    spend(creator);
    advance(3_000_000);
    expect(() => countCreate(creator)).toThrow(tooMany(600));
    advance(600_000);
    spend(creator);
    expect(() => countCreate(creator)).toThrow(tooMany(3_600));
  });

  it('do not count if their count is taken back', () => {
    const { countCreate, spend } = createCounter();
    const [uncount] = spend(creator);
    expect(() => countCreate(creator)).toThrow(tooMany(3_600));
    uncount?.();
    countCreate(creator);
    expect(() => countCreate(creator)).toThrow(tooMany(3_600));
  });

  it('are counted for each person, clerks included, and not for intake applications and service accounts', () => {
    const { countCreate, spend } = createCounter();
    const clerk = caller('carla', 'clerk');
    spend(clerk);
    expect(() => countCreate(clerk)).toThrow(tooMany(3_600));
    countCreate(caller('otto', 'clerk'));
    countCreate({ ...clerk, issuer: 'https://other.example.org' });
    countCreate(caller('carla', 'intake-application'));
    countCreate({ ...clerk, isServiceAccount: true });
  });
});
