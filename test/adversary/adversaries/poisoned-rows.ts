// Rows that make statements fail. They are written by SQL, and by request bodies that exploit a defect of V8
// (nodejs/node#63785). A run of the reconciler must still lock and delete every form that is due.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { slowFiles } from '../../support/poison.ts';
import { spawnReconciler } from '../../support/reconciler.ts';
import { definitionId } from '../world/preparation.ts';
import type { Adversary, Attack } from './adversary.ts';
import { send } from './hostile-client.ts';

/** Expected exit codes of the reconciler: 0, and 3, which means that items were quarantined. */
const accepted = [0, 3];

export const poisonedRows: Adversary = {
  name: 'poisoned-rows',
  about: 'rows that make statements fail, and a run of the reconciler',
  needsStores: true,
  async run(attack) {
    const { addresses, complain } = attack;
    await writeNulByBody(attack);
    const client = new pg.Client({ connectionString: addresses.databases.forms });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const due: string[] = [];
      for (const tenant of Object.values(addresses.tenants))
        for (const status of ['Draft', 'Locked'] as const) {
          for (const poison of poisons) due.push(await addForm(client, { tenantId: tenant.id, status, ...poison }));
          for (let count = 0; count < 3; count += 1) due.push(await addForm(client, { tenantId: tenant.id, status }));
        }
      const { code, stderr } = await spawnReconciler(addresses.reconcilerEnv).ended;
      if (code === null || !accepted.includes(code))
        complain(`the reconciler ended with ${code}: ${stderr.slice(-300)}`);
      const { rowCount } = await client.query(
        `SELECT FROM forms WHERE id = ANY($1) AND (status = 'Draft' OR
        (status = 'Locked' AND locked < now() - interval '39 days'))`,
        [due],
      );
      if (rowCount) complain(`${rowCount} of ${due.length} due forms were not locked or deleted`);
    } finally {
      await client.query("DELETE FROM forms WHERE created_by ->> 'id' = 'adversary'");
      await client.end();
    }
  },
};

/**
 * Tries to store a NUL in a member name, which must be refused. Sends two bodies to each replica: because of the defect
 * nodejs/node#63785, V8 may return the key `\\` of the first body instead of the key `\u0000` of the second body, so
 * that a check of the key misses the NUL.
 */
async function writeNulByBody({ addresses, random, signal, complain }: Attack): Promise<void> {
  const token = addresses.tokens.hostileIntake;
  const channels = [{ channel: 'email', address: `${random.word(10)}@example.net` }];
  const draft = { definitionId, applicant: { addressAs: 'Trudy', channels } };
  for (const { url } of addresses.replicas.forms) {
    const forms = `${url}/form/v1/forms`;
    const created = await send(forms, { method: 'POST', token, body: draft, signal });
    const id = /"id":"([^"]+)"/.exec(created.text)?.[1];
    for (const key of ['\\\\', '\\u0000']) {
      const body = `{"data":{"name":"x","q":1,"${key}":2},"files":{}}`;
      const { status } = await send(`${forms}/${id}/data`, { method: 'PUT', token, body, signal });
      if (key === '\\u0000' && status === 200) complain('a NUL in a member name was stored');
    }
  }
}

const poisons = [
  { data: '{"\\u0000":1}' },
  { files: '{"\\u0000":"urn:example:platform:file-service:v1:/files/x"}' },
  { files: '{"a":"\\u0000"}' },
  { files: '[1,2,3]' },
  { files: '"text"' },
  { files: slowFiles },
];

interface DueForm {
  tenantId: string;
  status: 'Draft' | 'Locked';
  data?: string;
  files?: string;
}

async function addForm(client: pg.Client, { tenantId, status, data = '{}', files = '{}' }: DueForm): Promise<string> {
  const id = randomUUID();
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address: `${id}@example.org` }] };
  await client.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
      one_per_applicant, applicant, last_accessed, locked, data, files)
    VALUES ($1, $2, $3, $4::text, now() - interval '60 days', '{"id":"adversary","name":"Adversary"}', 'core', true, false,
      $5, now() - interval '40 days', CASE $4::text WHEN 'Locked' THEN now() - interval '40 days' END, $6, $7)`,
    [id, tenantId, definitionId, status, applicant, data, files],
  );
  return id;
}
