// The form service's SQL statements, which all contenders of the forms bench run.
import type pg from 'pg';
import { createDataStore } from '../../src/forms/forms/data-store.ts';
import { unsharedPool } from '../../src/service/postgres/shared-pool.ts';

export interface BenchForm {
  formId: string;
  /** HMAC, in hexadecimal, of the code that opened the account's read session. */
  codeHash: string;
}

export interface FormsSettings {
  databaseUrl: string;
  tenantId: string;
  issuer: string;
  subject: string;
  forms: BenchForm[];
}

export interface Statements {
  put(form: BenchForm, data: string, files: string): Promise<string>;
  get(form: BenchForm): Promise<string>;
}

export function createStatements(pool: pg.Pool, settings: FormsSettings): Statements {
  const store = createDataStore(unsharedPool(pool));
  const { tenantId, issuer, subject } = settings;
  const found = (row: { body: string } | undefined) => {
    if (!row) throw new Error('no row');
    return row.body;
  };
  return {
    put: async ({ formId }, data, files) => {
      const now = new Date();
      const save = {
        tenantId,
        formId,
        now,
        data,
        files,
        revisions: undefined,
        anonymousOnly: true,
        session: undefined,
      };
      return found(await store.save(save));
    },
    get: async ({ formId, codeHash }) => {
      const key = { tenantId, formId, now: new Date(), issuer, subject, codeHash: Buffer.from(codeHash, 'hex') };
      return found(await store.readInSession(key));
    },
  };
}
