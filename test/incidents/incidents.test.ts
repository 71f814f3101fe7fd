// Runs the scripted incidents against the real product and a real Prometheus: each alert fires, and ends after the fix.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AlertWatch, watchAlerts } from './alert-watch.ts';
import type { Routine } from './faults.ts';
import { incidents, reportFile, shortSelection } from './incidents.ts';
import { type Measured, report } from './report.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { startWorld, type World } from './world.ts';

/** Seconds between two runs of the reconciler. */
const reconcilesEvery = 10;
/** Seconds within which an alert must fire after the fault begins, and end after the fix. */
const patience = 90;

const chosen =
  process.env.INCIDENTS === 'short' ? incidents.filter(({ fault }) => shortSelection.includes(fault)) : incidents;
const measured: Measured[] = [];
let world: World;
let traffic: Traffic;
let watch: AlertWatch;
let routine: Routine;
let timer: NodeJS.Timeout;

beforeAll(async () => {
  world = await startWorld();
  watch = await watchAlerts(world);
  traffic = await startTraffic(world);
  routine = { reconciles: true, reconcile: () => world.reconcile() };
  await routine.reconcile();
  timer = setInterval(() => routine.reconciles && void world.reconcile(), reconcilesEvery * 1_000);
  await delay(20_000);
}, 180_000);

afterAll(async () => {
  clearInterval(timer);
  await traffic?.stop();
  await watch?.close();
  await world?.close();
  process.stdout.write(report(measured));
  if (process.env.FORMGATE_WRITE_INCIDENTS === '1') writeFileSync(reportFile, report(measured));
}, 120_000);

test.each(chosen)('$fault: $alert fires, and ends after the fix', async (incident) => {
  await watch.wait(incident, [], patience);
  const fix = await incident.begin(world, routine);
  const times = { pending: 0, firing: 0, resolved: 0 };
  const from = Date.now();
  try {
    times.pending = await watch.wait(incident, ['pending', 'firing'], patience);
    await watch.wait(incident, ['firing'], patience);
    times.firing = (Date.now() - from) / 1_000;
    for (const { annotations } of await watch.active())
      expect(JSON.stringify(annotations)).not.toContain('error expanding');
  } finally {
    await fix();
  }
  times.resolved = await watch.wait(incident, [], patience);
  measured.push({ ...incident, ...times });
  process.stdout.write(`${JSON.stringify(measured.at(-1))}\n`);
});
