// A transaction locks the row of a form for a long time, and saves wait for the lock.
import pg from 'pg';
import { definitionId } from '../world/preparation.ts';
import type { Adversary } from './adversary.ts';
import { anyReplica, send, swarm, untilAborted } from './hostile-client.ts';

export const rowLocks: Adversary = {
  name: 'row-locks',
  about: 'a locked form, and 24 concurrent saves to it',
  needsStores: true,
  async run({ addresses, random, signal }) {
    const token = addresses.tokens.hostileIntake;
    const channels = [{ channel: 'email', address: `${random.word(10)}@example.net` }];
    const draft = { definitionId, applicant: { addressAs: 'Trudy', channels } };
    const created = await send(`${addresses.fronts.forms}/form/v1/forms`, {
      method: 'POST',
      token,
      body: draft,
      signal,
    });
    const id = /"id":"([^"]+)"/.exec(created.text)?.[1];
    if (id === undefined) return;
    const client = new pg.Client({ connectionString: addresses.databases.forms });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; BEGIN');
      await client.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [id]);
      const body = { data: { name: 'Trudy' }, files: {} };
      const save = () =>
        send(`${anyReplica(addresses, 'forms', random)}/form/v1/forms/${id}/data`, {
          ...{ method: 'PUT', token, body, signal },
        });
      await Promise.all([swarm(signal, 24, save), untilAborted(signal)]);
    } finally {
      await client.end();
    }
  },
};
