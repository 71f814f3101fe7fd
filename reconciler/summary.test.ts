// Tests the arguments, the progress and the summary of a run of the reconciler.
import { describe, expect, it } from 'vitest';
import { UsageError } from '../src/service/operations/command-line.ts';
import { captureLog } from '../test/support/captured-log.ts';
import { help, parseRunArguments } from './options.ts';
import { createProgress, describeReport, reportOf } from './progress.ts';
import type { RunResult } from './run.ts';
import { exitCodeOf, summarise } from './summary.ts';

const result: RunResult = {
  outcome: 'succeeded',
  dryRun: false,
  milliseconds: 12_345,
  counts: { warned: 120, locked: 3_000, deleted: 250, deletedNotNotified: 2, waiting: 0, purged: 4 },
  conditions: { 'Ready=True': 3 },
  failures: [],
  quarantined: 0,
};

describe('the summary', () => {
  it('is one line with what was done, without zeros', () => {
    expect(summarise({ ...result, counts: { ...result.counts, 'clients.written': 1, 'clients.pruned': 0 } })).toBe(
      'Succeeded in 12.3 s: 120 warned, 3,000 locked, 250 deleted, 2 of these without a notice, 4 rows purged; clients: 1 written, Ready=True 3.',
    );
  });

  it('names a dry run, a skipped run, and the reasons of a failure', () => {
    expect(summarise({ ...result, dryRun: true })).toMatch(/^Dry run, nothing was changed\. Succeeded/);
    expect(summarise({ ...result, outcome: 'skipped' })).toBe('Skipped: another run is active.');
    expect(summarise({ ...result, outcome: 'failed', failures: ['the expiry failed', 'no cluster'] })).toMatch(
      /^Failed in .*\. Failed: the expiry failed; no cluster\.$/,
    );
  });

  it('comes with exit code 1 only if the run failed', () => {
    const codes = (['succeeded', 'stopped', 'skipped', 'lost', 'failed'] as const).map((outcome) =>
      exitCodeOf({ outcome, quarantined: 0 }),
    );
    expect(codes).toEqual([0, 0, 0, 0, 1]);
  });

  it('comes with exit code 3 if items were quarantined, or 0 with --accept-quarantine', () => {
    const [done, failed] = [
      { outcome: 'succeeded', quarantined: 2 },
      { outcome: 'failed', quarantined: 2 },
    ] as const;
    expect(exitCodeOf(done)).toBe(3);
    expect([done, failed].map((one) => exitCodeOf(one, { acceptQuarantine: true }))).toEqual([0, 1]);
    expect(exitCodeOf(failed)).toBe(1);
    expect(summarise({ ...result, counts: { ...result.counts, quarantined: 2 } })).toContain('2 items quarantined');
  });
});

describe('the arguments', () => {
  it('are flags and one choice', () => {
    expect(parseRunArguments(['--dry-run', '--only', 'expire', '--allow-prune', '--accept-quarantine'])).toEqual({
      only: 'expire',
      dryRun: true,
      allowPrune: true,
      acceptQuarantine: true,
      help: false,
    });
    expect(parseRunArguments([])).toEqual({
      only: undefined,
      dryRun: false,
      allowPrune: false,
      acceptQuarantine: false,
      help: false,
    });
  });

  it('can be given as the usage in --help says', () => {
    const [, usage = ''] = /^Usage: npm run reconcile -- (.*)$/m.exec(help) ?? [];
    const args = usage.replaceAll(/[[\]]/g, '').replace('expire|clients', 'clients').split(' ');
    expect(parseRunArguments(args)).toEqual({
      only: 'clients',
      dryRun: true,
      allowPrune: true,
      acceptQuarantine: true,
      help: true,
    });
  });

  it.each([[['--only', 'everything']], [['--force']], [['now']], [['--only']]])('%j are rejected', (args) => {
    expect(() => parseRunArguments(args)).toThrow(UsageError);
  });
});

describe('progress', () => {
  it('contains a rate and the remaining time', () => {
    expect(reportOf(12_000, 1_000_000, 3_000)).toEqual({
      done: 12_000,
      total: 1_000_000,
      rate: 4_000,
      secondsLeft: 247,
    });
    expect(describeReport('lock', reportOf(12_000, 1_000_000, 3_000))).toBe(
      'lock: 12,000 of 1,000,000, 4,000 a second, 4 min 7 s left',
    );
    expect(describeReport('purge', reportOf(500, undefined, 1_000))).toBe('purge: 500, 500 a second');
    expect(reportOf(0, 10, 0).secondsLeft).toBeUndefined();
  });

  it('is one line that is overwritten on a terminal, and log lines elsewhere', () => {
    let now = 0;
    const clock = () => new Date(now);
    const written: string[] = [];
    const log = captureLog('info');
    for (const terminal of [(text: string) => void written.push(text), undefined]) {
      const progress = createProgress({ clock, log: log.log, terminal });
      progress.begin('lock', 100);
      progress.add(10);
      now += 10_000;
      progress.add(40);
      progress.end();
    }
    expect(written).toEqual(['\r\u001b[Klock: 50 of 100, 5 a second, 10 s left', '\r\u001b[K']);
    expect(log.lines()).toMatchObject([{ stage: 'lock', done: 50, total: 100, rate: 5, secondsLeft: 10 }]);
  });
});
