// Why a database cannot be used at the start, in words that an operator can act on. It never repeats what Postgres says:
// its messages quote values.

const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name of its host is not known',
  EAI_AGAIN: 'the name of its host cannot be looked up at the moment',
  ECONNREFUSED: 'its host refuses connections',
  ECONNRESET: 'the connection broke',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  ETIMEDOUT: 'its host does not answer',
  // https://www.postgresql.org/docs/current/errcodes-appendix.html
  '28P01': 'it refuses the user or the password',
  '28000': 'it does not let this user in',
  '3D000': 'there is no database of this name',
  '42501': 'the role may not do what a migration needs',
  '53100': 'its disk is full',
  '53300': 'it has no connection left',
  '55P03': 'somebody else holds a lock on what has to change',
  '57014': 'it took too long',
  '57P01': 'it was shut down',
  '57P03': 'it is starting or stopping',
};

const messages: Readonly<Record<string, string>> = { 'timeout expired': 'its host does not answer' };

/** Postgrator says `MD5 checksum failed for migration [1]` where the table of migrations has another file's. */
function explainMigration(message: string): string {
  const [, number] = /^MD5 checksum failed for migration \[(\d+)\]/.exec(message) ?? [];
  if (number === undefined) return message;
  return `it has the tables of another service, or migration ${number} was changed; check DATABASE_URL`;
}

/** One clause, with the code of the failure if it has one: `it refuses the user or the password (28P01)`. */
export function explainDatabaseFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'for an unknown reason';
  // Ours or the migration tool's; pg says so when it gives up waiting.
  if (!('code' in error) || typeof error.code !== 'string')
    return messages[error.message] ?? explainMigration(error.message);
  return `${reasons[error.code] ?? 'it refuses what was asked for'} (${error.code})`;
}
