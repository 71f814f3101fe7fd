// The faults of the scripted incidents. Each function causes a fault, and returns a function that fixes it.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { createCertificate } from '../support/certificate.ts';
import { refuseFormChanges } from '../support/poison.ts';
import type { TcpGate } from '../support/tcp-gate.ts';
import type { Job, World } from './world.ts';

/** Lets a fault suspend the reconciler's schedule, or run the reconciler. */
export interface Routine {
  /** While false, the reconciler does not run. */
  reconciles: boolean;
  reconcile(): Promise<void>;
}

export const shut = (name: keyof World['gates']) => async (world: World) => {
  await world.gates[name].shut();
  return () => world.gates[name].open();
};

/** Repeats a step. Returns a function that fixes the fault: it ends the repetition and waits for the last step. */
function repeated(step: () => Promise<void>): () => Promise<void> {
  let stopped = false;
  const running = (async () => {
    while (!stopped) await step();
  })();
  return async () => {
    stopped = true;
    await running;
  };
}

/**
 * Repeatedly freezes a gate (the TCP proxy before a dependency) for `frozenMs`, with a moment of traffic in between.
 */
export const stutter = (gateOf: (world: World) => TcpGate, frozenMs: number) => async (world: World) => {
  const gate = gateOf(world);
  const fix = repeated(async () => {
    gate.freeze();
    await delay(frozenMs);
    await gate.open();
    await delay(300);
  });
  return fix;
};

export async function lockForms(world: World): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: world.databaseUrls.forms });
  await client.connect();
  const fix = repeated(async () => {
    await client.query('BEGIN');
    await client.query('LOCK TABLE forms IN ACCESS EXCLUSIVE MODE');
    await delay(2_500);
    await client.query('COMMIT');
    await delay(50);
  });
  return async () => {
    await fix();
    await client.end();
  };
}

export async function fillRedis({ redis }: World): Promise<() => Promise<void>> {
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  return async () => void (await redis.command('CONFIG', 'SET', 'maxmemory', '0'));
}

export const stopService = (job: Job) => async (world: World) => {
  await world.stop(job);
  return () => world.start(job);
};

/** Takes the CPU away from a process for most of the time, as an overloaded node does. */
export const starve = (job: Job) => async (world: World) => {
  const pid = await world.pidOf(job);
  return repeated(async () => {
    process.kill(pid, 'SIGSTOP');
    await delay(800);
    process.kill(pid, 'SIGCONT');
    await delay(200);
  });
};

/** Restarts a process with other settings. The fix restarts it with the usual settings. */
export const restartWith = (job: Job, settings: (world: World) => Record<string, string>) => async (world: World) => {
  const usual = world.settings[job];
  await restart(world, job, { ...usual, ...settings(world) });
  return () => restart(world, job, usual);
};

async function restart(world: World, job: Job, settings = world.settings[job]): Promise<void> {
  world.settings[job] = settings;
  await world.stop(job);
  await world.start(job);
}

export const tenMinutesAhead = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../upgrades/shifted-process.ts')).href}`,
  TEST_TIME_SHIFT: '600000',
};

/** Returns settings that make a process trust a certificate authority that expires tomorrow. */
export function expiringAuthority({ folder }: World): Record<string, string> {
  return { NODE_EXTRA_CA_CERTS: createCertificate(folder, { days: 1 }).certificateFile };
}

/** Makes the token handler's key look as if it was first seen long ago. The fix rotates the key. */
export async function ageKey(world: World): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: world.databaseUrls.tokenHandler });
  await client.connect();
  await client.query(`UPDATE key_ring_keys SET first_seen = now() - interval '1000 days'`);
  await client.end();
  await restart(world, 'token-handler');
  return () => {
    const settings = world.settings['token-handler'];
    const ring = `fresh:${randomBytes(32).toString('base64')},${settings.KEY_RING}`;
    return restart(world, 'token-handler', { ...settings, KEY_RING: ring });
  };
}

/**
 * Removes the form service's registration from the configuration of the event service, as an operator's script that
 * replaces this configuration may do.
 */
export async function overwriteRegistration(world: World): Promise<() => Promise<void>> {
  // Restart the form service, so that it checks its registration within seconds. Without a restart, up to an hour
  // passes between two checks.
  await restart(world, 'forms');
  await delay(2_000);
  const client = new pg.Client({ connectionString: world.databaseUrls.platform });
  await client.connect();
  const { rowCount } = await client.query(
    `UPDATE configuration_revisions SET configuration = (configuration::jsonb - 'form-service')::json
     WHERE namespace = 'platform' AND name = 'event-service' AND configuration::jsonb ? 'form-service'`,
  );
  await client.end();
  if (rowCount === 0) throw new Error('there was no registration');
  return async () => undefined;
}

/** Fills a draft until the forms of its tenant are near a low storage limit. The fix raises the limit. */
export async function fillStorage(world: World): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: world.databaseUrls.forms });
  await client.connect();
  // Otherwise, Postgres would compress the data.
  await client.query('ALTER TABLE forms ALTER COLUMN data SET STORAGE EXTERNAL');
  await client.query(
    `UPDATE forms SET data = (SELECT to_json(string_agg(md5(random()::text), '')) FROM generate_series(1, 850000))
     WHERE id = (SELECT id FROM forms WHERE status = 'Draft' LIMIT 1)`,
  );
  // The form service did not write this data itself, so it would measure the tenant only an hour later.
  await client.query('DELETE FROM tenant_storage');
  await client.end();
  return restartWith('forms', () => ({ TENANT_STORAGE_LIMIT: String(32 * 1_048_576) }))(world);
}

/** Restarts the form service while it cannot reach the platform. */
export async function startWithoutPlatform(world: World): Promise<() => Promise<void>> {
  await world.stop('forms');
  await world.gates.platform.shut();
  await world.start('forms');
  return () => world.gates.platform.open();
}

/** Makes a draft due to be locked, and adds a database trigger that rejects every change of this draft. */
export async function poisonDraft(world: World, routine: Routine): Promise<() => Promise<void>> {
  const pool = new pg.Pool({ connectionString: world.databaseUrls.forms, max: 1 });
  const { rows } = await pool.query<{ id: string }>(
    `UPDATE forms SET created = now() - interval '20 days', last_accessed = now() - interval '20 days'
     WHERE id = (SELECT id FROM forms WHERE status = 'Draft' LIMIT 1) RETURNING id`,
  );
  await refuseFormChanges(
    pool,
    rows.map(({ id }) => id),
  );
  await routine.reconcile();
  return async () => {
    await pool.query('TRUNCATE unchangeable');
    await pool.query('UPDATE quarantine SET released = true');
    await pool.end();
    await routine.reconcile();
  };
}
