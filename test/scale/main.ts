// `npm run scale`: fills a Postgres with drafts and a Redis with sessions, and measures the time and memory that they
// cost.
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { startExpiryBench } from '../bench/expiry-world.ts';
import { openDatabase, type ScaleDatabase } from './database.ts';
import { measureMigrations } from './migrations.ts';
import { fillAddresses, measureQueries, measureRequests } from './operations.ts';
import { onCluster, onServer } from './redis.ts';

const parts = ['migrations', 'requests', 'expiry', 'sessions', 'cluster'] as const;

const help = `Measures Formgate with many drafts and sessions. Prints one JSON object per line.

Usage: npm run scale -- [options]

  --drafts N     drafts in the database (1000000); 10000000 need 35 GB and an hour
  --sessions N   sessions in Redis (100000)
  --folder DIR   keeps the filled database there for later runs; otherwise it is temporary
  --only PART    only this part; may be given several times: ${parts.join(', ')}
  --help         print this

Migrations are measured on a newly filled database only, which begins with the schema of version 0.2.0.
`;

const tenant = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';

const print = (what: string, figures: object) =>
  void process.stdout.write(`${JSON.stringify({ what, ...figures, load: loadavg()[0] })}\n`);

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      drafts: { type: 'string', default: '1000000' },
      sessions: { type: 'string', default: '100000' },
      folder: { type: 'string' },
      only: { type: 'string', multiple: true, default: [...parts] },
      help: { type: 'boolean', default: false },
    },
  });
  const isUnknown = values.only.some((name) => !(parts as readonly string[]).includes(name));
  const [drafts, sessions] = [Number(values.drafts), Number(values.sessions)];
  if (values.help || isUnknown || !(drafts >= 1_000) || !(sessions >= 100)) {
    process.stdout.write(help);
    return values.help ? 0 : 2;
  }
  const asks = (part: (typeof parts)[number]) => values.only.includes(part);
  print('machine', { processors: availableParallelism() });
  if (asks('migrations') || asks('requests') || asks('expiry')) {
    const database = await openDatabase({
      ...{ drafts, tenant, folder: values.folder },
      log: (line) => process.stderr.write(`${line}\n`),
    });
    await measureDatabase(database, asks).finally(database.close);
  }
  if (asks('sessions')) print('sessions on one Redis', await onServer(sessions));
  if (asks('cluster')) print('sessions on a Cluster of three nodes', await onCluster(sessions));
  return 0;
}

/** Measures the migrations first, because the other measurements need the latest schema. */
async function measureDatabase(database: ScaleDatabase, asks: (part: (typeof parts)[number]) => boolean) {
  for (const result of await measureMigrations(database, tenant)) print('migration', result);
  const { rows } = await database.pool.query(
    `SELECT relname AS name, pg_table_size(oid)::float8 AS bytes, pg_indexes_size(oid)::float8 AS index_bytes
     FROM pg_class WHERE relname IN ('forms', 'outbox', 'applicant_addresses')`,
  );
  for (const row of rows) print('size', row);
  if (!asks('requests') && !asks('expiry')) return;
  if (asks('requests')) {
    await fillAddresses(database.pool);
    for (const timing of await measureQueries(database.pool)) print('query', timing);
  }
  const bench = await startExpiryBench({ ...database, close: async () => undefined });
  try {
    if (asks('requests')) {
      const forms = await bench.startForms();
      for (const timing of await measureRequests(bench, forms.url)) print('request', timing);
      print('pod', { residentBytes: await forms.residentBytes(), cpuSeconds: await forms.cpuSeconds() });
      await forms.close();
    }
    if (asks('expiry')) print('run of the reconciler', await bench.reconcile());
  } finally {
    await bench.close();
  }
}

process.exitCode = await main();
// A bench leaves idle connections behind, which would keep the process alive.
process.exit();
