// Checks the database of a process. The database must be reachable, have a supported Postgres version, accept writes
// and allow enough connections. The process must be able to use the schema, or to create or migrate it.
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { explainDatabaseFailure, isDatabaseOutage } from '../../service/postgres/database-failure.ts';
import { inspectSchema, type SchemaState } from '../../service/postgres/schema-state.ts';
import type { Finding } from './finding.ts';

export interface DatabaseCheckOptions {
  url: string;
  /** Folder of the migrations of the process that owns the database. */
  directory: string;
  /** Name of the process that creates the schema. Undefined if the checked process itself creates it. */
  owner?: string | undefined;
  /** Maximum number of connections that one process opens. */
  connections: number;
  /** Further checks of the database's content. They run only if the schema exists. */
  inspect?: ((client: pg.Client) => Promise<Finding[]>) | undefined;
  /** Timeout of the connection attempt and of each query, in milliseconds. */
  timeLimit: number;
}

const oldestVersion = 15;

export async function checkDatabase(options: DatabaseCheckOptions): Promise<Finding[]> {
  const { url, timeLimit } = options;
  const unreadable = await findUnreadableFiles(url);
  if (unreadable.length > 0) return unreadable;
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeLimit,
    query_timeout: timeLimit,
  });
  // Without a listener for `error`, a connection that breaks would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await inspectDatabase(client, options);
  } catch (error) {
    const severity = isDatabaseOutage(error) || isLate(error) ? 'unreachable' : 'error';
    return [
      { severity, name: 'DATABASE_URL', problem: `the database cannot be used: ${explainDatabaseFailure(error)}` },
    ];
  } finally {
    // Not awaited, because Postgres may never confirm the end of the connection.
    client.end().catch(() => undefined);
  }
}

/** Parameters of the URL that name files. pg reads these files when a client is created. */
const fileParameters = ['sslrootcert', 'sslcert', 'sslkey'];

async function findUnreadableFiles(url: string): Promise<Finding[]> {
  const { searchParams } = new URL(url);
  const found = fileParameters.map(async (parameter): Promise<Finding[]> => {
    const file = searchParams.get(parameter);
    if (!file) return [];
    return readFile(file).then(
      () => [],
      ({ code }: NodeJS.ErrnoException) => {
        const problem = `the file that ${parameter} names cannot be read (${code})`;
        return [{ severity: 'error', name: 'DATABASE_URL', problem }];
      },
    );
  });
  return (await Promise.all(found)).flat();
}

/** True for the error that pg throws if a query exceeds `query_timeout`. */
const isLate = (error: unknown) => error instanceof Error && error.message === 'Query read timeout';

async function inspectDatabase(client: pg.Client, options: DatabaseCheckOptions): Promise<Finding[]> {
  const facts = await readFacts(client);
  const state = await inspectSchema(client, options.directory);
  const problems = [
    ...serverProblems(facts, options.connections),
    ...schemaProblems(state, facts.mayCreate, options.owner),
  ];
  return [...problems, ...(state.kind === 'none' ? [] : ((await options.inspect?.(client)) ?? []))];
}

interface Facts {
  version: number;
  isStandby: boolean;
  mayCreate: boolean;
  /** The smallest of the connection limits of the server, the database and the role. */
  connections: number;
}

/** In `datconnlimit` and `rolconnlimit`, -1 means no limit. */
const factsSql = `SELECT current_setting('server_version_num')::int / 10000 AS version,
  pg_is_in_recovery() AS "isStandby",
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
  least(current_setting('max_connections')::int, nullif(d.datconnlimit, -1), nullif(r.rolconnlimit, -1)) AS connections
FROM pg_database d, pg_roles r WHERE d.datname = current_database() AND r.rolname = current_user`;

async function readFacts(client: pg.Client): Promise<Facts> {
  const { rows } = await client.query<Facts>(factsSql);
  const [facts] = rows;
  if (!facts) throw new Error('it does not describe itself');
  return facts;
}

/** Exported for its test, because the tests have neither an old server nor a standby. */
export function serverProblems({ version, isStandby, connections }: Facts, needed: number): Finding[] {
  const problems: Finding[] = [];
  const add = (name: string, problem: string) => problems.push({ severity: 'error', name, problem });
  if (version < oldestVersion)
    add('DATABASE_URL', `Postgres ${version} is too old: ${oldestVersion} or newer is needed`);
  if (isStandby) add('DATABASE_URL', 'the database is a standby, which refuses writes');
  if (connections < needed)
    add('DATABASE_POOL_SIZE', `one process opens up to ${needed} connections, but the database allows ${connections}`);
  return problems;
}

function schemaProblems(state: SchemaState, mayCreate: boolean, owner: string | undefined): Finding[] {
  const name = 'DATABASE_URL';
  if (state.kind === 'none' && owner !== undefined) {
    const problem = `the database has no tables of ${owner}, which creates them; check DATABASE_URL`;
    return [{ severity: 'error', name, problem }];
  }
  if (state.kind === 'newer') {
    const problem = `the schema is newer (migration ${state.version}) than this release: right only after a rollback`;
    return [{ severity: 'warning', name, problem }];
  }
  if (state.kind === 'current' || mayCreate) return [];
  return [{ severity: 'error', name, problem: 'the role may not create tables, which a pending migration needs' }];
}
