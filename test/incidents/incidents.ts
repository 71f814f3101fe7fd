// Scripted incidents. Each begins one fault in the running product, and says which alert it must raise.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { refuseFormChanges } from '../support/poison.ts';
import type { TcpGate } from '../support/tcp-gate.ts';
import type { Job, World } from './world.ts';

/** Switches of the harness that faults may turn. */
export interface Routine {
  /** While false, the reconciler does not run. */
  reconciles: boolean;
  reconcile(): Promise<void>;
}

export interface Incident {
  fault: string;
  alert: string;
  severity: 'critical' | 'warning';
  /** Begins the fault and returns its fix. */
  begin(world: World, routine: Routine): Promise<() => Promise<void>>;
}

const shut = (name: keyof World['gates']) => async (world: World) => {
  await world.gates[name].shut();
  return () => world.gates[name].open();
};

/** Repeats a step until the fix, and then waits for its end. */
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

/** Lets traffic through for a moment every few seconds. */
const stutter = (gateOf: (world: World) => TcpGate, frozenMs: number) => async (world: World) => {
  const gate = gateOf(world);
  const fix = repeated(async () => {
    gate.freeze();
    await delay(frozenMs);
    await gate.open();
    await delay(300);
  });
  return fix;
};

async function lockForms(world: World): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: world.databaseUrl });
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

async function fillRedis({ redis }: World): Promise<() => Promise<void>> {
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  return async () => void (await redis.command('CONFIG', 'SET', 'maxmemory', '0'));
}

const stopService = (job: Job) => async (world: World) => {
  await world.stop(job);
  return () => world.start(job);
};

/** Takes the CPU away for most of the time, as a full node does. */
const starve = (job: Job) => async (world: World) => {
  const pid = await world.pidOf(job);
  return repeated(async () => {
    process.kill(pid, 'SIGSTOP');
    await delay(800);
    process.kill(pid, 'SIGCONT');
    await delay(200);
  });
};

/** A draft that is due, and that a trigger of the database refuses to change. */
async function poisonDraft(world: World, routine: Routine): Promise<() => Promise<void>> {
  const pool = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
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

export const incidents: Incident[] = [
  { fault: 'Redis stopped', alert: 'FormgateStoreDown', severity: 'critical', begin: shut('redis') },
  {
    ...{ fault: 'Postgres of the form service stopped', alert: 'FormgateStoreDown', severity: 'critical' },
    begin: shut('formsPostgres'),
  },
  { fault: 'Mail server down', alert: 'FormgateCodesNotDelivered', severity: 'critical', begin: shut('mail') },
  {
    ...{ fault: 'Identity provider stopped', alert: 'FormgateIdentityProviderDown', severity: 'critical' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'Reconciler suspended', alert: 'FormgateReconcilerLate', severity: 'warning' },
    begin: async (_world, routine) => {
      routine.reconciles = false;
      return async () => {
        routine.reconciles = true;
        await routine.reconcile();
      };
    },
  },
  {
    ...{ fault: 'Token handler stopped', alert: 'FormgateServiceDown', severity: 'critical' },
    begin: stopService('token-handler'),
  },
  { fault: 'Event service down', alert: 'FormgateOutboxStuck', severity: 'warning', begin: shut('platform') },
  {
    ...{ fault: 'All sign-ins of a client fail', alert: 'FormgateSignInFailingForClient', severity: 'warning' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'A row that Postgres refuses', alert: 'FormgateQuarantineGrowing', severity: 'warning' },
    begin: poisonDraft,
  },
  {
    ...{ fault: 'A draft that cannot be locked', alert: 'FormgateDraftsOverdue', severity: 'warning' },
    begin: poisonDraft,
  },
  {
    ...{ fault: 'Form service without CPU', alert: 'FormgateEventLoopBlocked', severity: 'warning' },
    begin: starve('forms'),
  },
  {
    ...{ fault: 'Identity provider failing', alert: 'FormgateSignInAvailability', severity: 'critical' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'Memory of Redis full (disk full)', alert: 'FormgateSignInAvailability', severity: 'critical' },
    begin: fillRedis,
  },
  {
    ...{ fault: 'Postgres stopped', alert: 'FormgateFormApiAvailability', severity: 'critical' },
    begin: shut('formsPostgres'),
  },
  {
    ...{ fault: 'Upstream of a target hangs', alert: 'FormgateTargetsAvailability', severity: 'critical' },
    begin: async ({ gates }) => {
      gates.target.freeze();
      return () => gates.target.open();
    },
  },
  {
    ...{ fault: 'Postgres slow: a lock on the forms', alert: 'FormgateFormApiLatency', severity: 'critical' },
    begin: lockForms,
  },
  {
    ...{ fault: 'Identity provider slow', alert: 'FormgateSignInLatency', severity: 'critical' },
    begin: stutter(({ gates }) => gates.identityProvider, 4_000),
  },
  {
    ...{ fault: 'Upstream of a target slow', alert: 'FormgateTargetsLatency', severity: 'critical' },
    begin: stutter(({ gates }) => gates.target, 1_700),
  },
];

/** The incidents that a run with INCIDENTS=short has. */
export const shortSelection = ['Redis stopped', 'Mail server down', 'Token handler stopped'];

export const reportFile = join(import.meta.dirname, '../../docs/incidents.md');
