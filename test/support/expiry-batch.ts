// Runs single statements of the expiry on a database of forms. Each test has its own definition, so that its statements
// see only its own forms.
import type { Policy, Retention } from '../../src/forms/expiry/expiry.ts';
import { type BareStage, type Batch, expiryStore, type Position, type Stage } from '../../src/forms/expiry/store.ts';
import { withTransaction } from '../../src/service/postgres/postgres.ts';
import { day, type ExpiryWorld, type NewForm, tenant } from './expiry.ts';

let made = 0;

export function createBatches(world: ExpiryWorld, periods: Partial<Retention> = {}) {
  made += 1;
  const definitionId = `definition-${made}`;
  const retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 20 * day, ...periods };
  const policy: Policy = { tenantId: tenant, definitionId, retention };
  const policies = [policy];

  return {
    ...{ policy, policies, definitionId },
    add: (form: NewForm = {}) => world.add({ definitionId, ...form }),
    run(stage: Stage, options: { position?: Position; limit?: number; dryRun?: boolean } = {}): Promise<Batch> {
      const { position = { policies }, limit = 100, dryRun = false } = options;
      return withTransaction(world.pool, (client) =>
        expiryStore.batch(client, stage, { position, now: world.now(), limit, dryRun }),
      );
    },
    bare: (stage: BareStage, formId: string, position: Position = { policies }) =>
      withTransaction(world.pool, (client) =>
        expiryStore.takeBare(client, stage, { position, now: world.now(), formId }),
      ),
    count: (stage: Stage) => expiryStore.count(world.pool, stage, policies, world.now()),
    oldestOverdue: () => expiryStore.oldestOverdue(world.pool, policies, world.now()),
    /** Quarantines a form for a stage. */
    quarantine: (formId: string, kind: string, released = false) =>
      world.pool.query(
        `INSERT INTO quarantine (kind, item, about, reason, detail, first_seen, last_tried, attempts, version, released)
        VALUES ($1, $2, $3, 'r', 'd', $4, $4, 1, 'v', $5)`,
        [kind, formId, { formId }, world.now(), released],
      ),
    /** Runs all batches of a stage. Returns the number of batches and the sum of their counts. */
    async runAll(stage: Stage, limit: number, policiesOfRun: readonly Policy[] = policies) {
      const total = { batches: 0, walked: 0, warned: 0, locked: 0, deleted: 0 };
      let position: Position | undefined = { policies: policiesOfRun };
      while (position) {
        const batch: Batch = await this.run(stage, { position, limit });
        total.batches += 1;
        for (const name of ['walked', 'warned', 'locked', 'deleted'] as const) total[name] += batch[name];
        position = batch.next;
      }
      return total;
    },
  };
}

export const nothing: Batch = {
  ...{ walked: 0, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [] },
  next: undefined,
};
