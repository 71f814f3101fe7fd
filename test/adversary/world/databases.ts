// Creates a database for each service on a given Postgres server, and drops the databases at the end.
import { randomBytes } from 'node:crypto';
import pg from 'pg';

export interface Databases {
  urls: { forms: string; tokenHandler: string; platform: string };
  /** Database names; adversaries that cut connections need them. */
  names: string[];
  drop(): Promise<void>;
}

/** Creates a database for each service. The database names begin with `prefix`. */
export async function createDatabases(administratorUrl: string, prefix: string): Promise<Databases> {
  const suffix = randomBytes(6).toString('hex');
  const nameOf = (part: string) => `${prefix}_${suffix}_${part}`;
  const names = ['forms', 'token_handler', 'platform'].map(nameOf);
  const asAdministrator = async (statements: string[]) => {
    const client = new pg.Client({ connectionString: administratorUrl });
    client.on('error', () => undefined);
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await asAdministrator(names.map((name) => `CREATE DATABASE ${name}`));
  const urlOf = (part: string) => {
    const url = new URL(administratorUrl);
    url.pathname = `/${nameOf(part)}`;
    return url.href;
  };
  return {
    urls: { forms: urlOf('forms'), tokenHandler: urlOf('token_handler'), platform: urlOf('platform') },
    names,
    drop: () => asAdministrator(names.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}
