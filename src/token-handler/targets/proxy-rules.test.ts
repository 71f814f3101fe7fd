// Tests which problem a client gets if the upstream fails, when a request may be repeated, and how requests are
// counted.
import prom from 'prom-client';
import { errors } from 'undici';
import { describe, expect, it } from 'vitest';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { Rejection } from '../rejection.ts';
import { failureProblem, isRepeatable, lateProblem, slowBodyProblem } from './proxy-failure.ts';
import { failedOutcome, outcomeOf, proxyOutcomes } from './proxy-outcome.ts';
import { createTargetMetrics } from './target-metrics.ts';

const withCode = (code: unknown) => Object.assign(new Error('failed'), { code });

describe('a request whose connection broke', () => {
  it.each(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])('is sent again for GET and HEAD only: %s', (code) => {
    const repeated = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', ''].filter((method) =>
      isRepeatable(method, withCode(code)),
    );
    expect(repeated).toEqual(['GET', 'HEAD']);
  });

  it.each(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', '', undefined, 1])(
    'is not sent again after another failure: %j',
    (code) => {
      expect(isRepeatable('GET', withCode(code))).toBe(false);
      expect(isRepeatable('GET', new Error('no code'))).toBe(false);
    },
  );
});

/** Returns new metrics, and a function that returns the labels and values of all counts that are not 0. */
function counters() {
  const registry = new prom.Registry();
  const { dependencyFailures } = createMetrics();
  const { aborted } = createTargetMetrics({ registry, namesTargets: false });
  const labels = async (counter: typeof aborted | typeof dependencyFailures) =>
    (await counter.get()).values.filter(({ value }) => value !== 0).map((each) => [each.labels, each.value]);
  return {
    metrics: { dependencyFailures, aborted },
    counts: async () => [...(await labels(dependencyFailures)), ...(await labels(aborted))],
  };
}

describe('a failed request', () => {
  it('keeps the problem that ended it, and does not count as a failure of the upstream', async () => {
    const { metrics, counts } = counters();
    const problem = new Problem('busy');
    expect(failureProblem(problem, true, metrics)).toBe(problem);
    expect(await counts()).toEqual([]);
  });

  it('with a header that cannot be forwarded gets 400, and does not count as a failure of the upstream', async () => {
    const { metrics, counts } = counters();
    expect(failureProblem(new errors.InvalidArgumentError('invalid header'), false, metrics)).toMatchObject({
      ...{ slug: 'invalid-request', status: 400 },
    });
    expect(await counts()).toEqual([]);
  });

  it.each([
    [false, 'The upstream cannot be reached or gave no valid response.'],
    [true, 'The upstream broke off its response.'],
  ])('is a 502 that says whether the response had begun: %j', async (hasBegun, detail) => {
    const { metrics, counts } = counters();
    const cause = withCode('ECONNRESET');
    const problem = failureProblem(cause, hasBegun, metrics);
    expect(problem).toMatchObject({ slug: 'dependency-failed', status: 502, detail });
    // The cause is for the log line. The client does not receive it.
    expect(problem.cause).toBe(cause);
    expect(await counts()).toEqual([
      [{ dependency: 'upstream', kind: 'failed' }, 1],
      [{ side: 'upstream' }, 1],
    ]);
  });

  it('whose host cannot be looked up is a 502, and counts as a failed lookup', async () => {
    const { metrics, counts } = counters();
    const cause = Object.assign(withCode('ENOTFOUND'), { syscall: 'getaddrinfo' });
    expect(failureProblem(cause, false, metrics)).toMatchObject({ slug: 'dependency-failed', cause });
    expect(await counts()).toContainEqual([{ dependency: 'upstream', kind: 'lookup' }, 1]);
  });

  it('that waited too long is a 504, and counts as a timeout of the upstream', async () => {
    const { metrics, counts } = counters();
    expect(lateProblem(metrics)).toMatchObject({ slug: 'dependency-timeout', status: 504 });
    expect(await counts()).toEqual([[{ dependency: 'upstream', kind: 'timeout' }, 1]]);
  });

  it('whose body arrived too slowly is a 408', () => {
    expect(slowBodyProblem()).toMatchObject({ slug: 'request-timeout', status: 408 });
  });
});

describe('a forwarded request', () => {
  it.each<[number, boolean, string]>([
    [200, true, 'succeeded'],
    [399, true, 'succeeded'],
    [400, true, 'client-error'],
    [499, true, 'client-error'],
    [500, true, 'server-error'],
    [999, true, 'server-error'],
    [200, false, 'aborted'],
    [500, false, 'aborted'],
    [101, false, 'succeeded'],
  ])('with status %i, complete: %j, counts as %s', (statusCode, writableEnded, outcome) => {
    expect(outcomeOf({ statusCode, writableEnded })).toBe(outcome);
  });
});

describe('a request that ended with an error', () => {
  const isForwarded = true;

  it.each<[string, unknown, string, string]>([
    ['an unknown error', new Error('x'), 'unreachable', 'failed'],
    ['no error object', undefined, 'unreachable', 'failed'],
    ['a failed dependency', new Problem('dependency-failed'), 'unreachable', 'failed'],
    ['a late dependency', new Problem('dependency-timeout'), 'timeout', 'failed'],
    ['no free connection', new Problem('busy'), 'refused', 'refused'],
    ['a session that has ended', new Problem('unauthenticated'), 'refused', 'refused'],
    ['a session store that cannot be reached', new Problem('unavailable'), 'failed', 'failed'],
    ['an internal error', new Problem('internal'), 'failed', 'failed'],
    ['an upstream that is unknown', new Rejection('target', 'upstream-unresolved', ''), 'refused', 'refused'],
  ])(
    'counts as refused or failed, depending on the error and on whether it was forwarded: %s',
    (_what, error, afterChecks, before) => {
      expect([failedOutcome(error, isForwarded), failedOutcome(error, !isForwarded)]).toEqual([afterChecks, before]);
    },
  );
});

it('the outcomes of proxied requests keep the names that operators know', () => {
  expect(proxyOutcomes).toEqual([
    ...['succeeded', 'client-error', 'server-error', 'unreachable', 'timeout', 'refused', 'failed', 'aborted'],
  ]);
});
