// Tests the expiry that the metric shows for a bundle of authorities.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import prom from 'prom-client';
import { expect, it, onTestFinished } from 'vitest';
import { createCertificate } from '../../../test/support/certificate.ts';
import { createCertificateMetrics } from './certificate-metrics.ts';

const day = 86_400_000;

/**
 * Returns the days, counted from today, until the expiry that the metric shows after `passed` days for a bundle of
 * certificates that are valid for `days` days. The process started today.
 */
async function daysShown(days: number[], passed: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-bundle-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const today = Date.now();
  const bundle = days.map((one) => createCertificate(folder, { days: one }).certificate).join('\n');
  const registry = new prom.Registry();
  let now = today;
  createCertificateMetrics({ registry, clock: () => new Date(now) }).recordAuthorities('extra-ca', bundle);
  now += passed * day;
  const seconds = Number(/certificate="extra-ca"\} (\d+)/.exec(await registry.metrics())?.[1]);
  return Math.round((seconds * 1_000 - today) / day);
}

it('an operator sees the next expiry in a bundle, although another authority of it has expired', async () => {
  expect(await daysShown([10, 300, 60], 0)).toBe(10);
  expect(await daysShown([10, 300, 60], 30)).toBe(60);
});

it('an operator sees the last expiry in a bundle if all of its authorities have expired', async () => {
  expect(await daysShown([10, 20], 30)).toBe(20);
});
