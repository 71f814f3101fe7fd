// The end of every statement that deletes forms: by a person, and by the expiry.
import { fileUrnsSql } from '../outbox/file-urns.ts';
import { clearQuarantineSql } from '../quarantine/clear.ts';

/** An outbox row for each row of `from`: its kind and its facts, an SQL expression. */
interface OutboxRow {
  kind: string;
  facts: string;
  from: string;
}

/**
 * Common table expressions that follow `gone`, which deletes forms and returns id, tenant_id, definition_id,
 * anonymous_applicant, files, subscriber_id, notified, and actor (jsonb, null for the expiry). They write tombstones, clear
 * the quarantine, and write outbox rows; `told` may do something else with these. Foreign keys delete idempotency records
 * and codes. Nothing parses data or files, so a form whose content Postgres cannot read can be deleted.
 */
export function afterDeletionSql(now: string, told: (row: OutboxRow) => string = insertSql(now)): string {
  const facts = `jsonb_strip_nulls(jsonb_build_object('definitionId', definition_id, 'actor', actor,
    'subscriberId', subscriber_id, 'files', ${fileUrnsSql('files')}))`;
  return `tombstone AS (
  INSERT INTO tombstones (form_id, tenant_id, definition_id, anonymous_applicant, deleted, notified)
  SELECT id, tenant_id, definition_id, anonymous_applicant, ${now}, notified FROM gone
  ON CONFLICT (form_id) DO UPDATE SET deleted = excluded.deleted, notified = excluded.notified
), ${clearQuarantineSql(now)}, told AS (${told({ kind: 'form-deleted', facts, from: 'gone' })})`;
}

const insertSql = (now: string) => {
  return ({ kind, facts, from }: OutboxRow) => `
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT id, tenant_id, '${kind}', ${facts}, ${now}, ${now} FROM ${from}`;
};
