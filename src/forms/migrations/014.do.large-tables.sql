-- Runs outside of a transaction: changes that take minutes if there are millions of forms. Saves continue meanwhile.

-- The forms that a signed-in person created.
CREATE INDEX CONCURRENTLY IF NOT EXISTS forms_of_creator
  ON forms (tenant_id, created_by_issuer, (created_by ->> 'id'), created, id) WHERE NOT anonymous_applicant;
---
-- Lists by status.
CREATE INDEX CONCURRENTLY IF NOT EXISTS forms_by_status ON forms (tenant_id, status, created, id);
---
-- Version 0.2 let send-code and the dispatcher subscribe a form at the same time. The locks of the foreign key last for
-- one batch.
DO $$
DECLARE
  position uuid := '00000000-0000-0000-0000-000000000000';
  until timestamptz := (SELECT run_at FROM schema_migrations WHERE version = 6);
  batch uuid[];
BEGIN
  LOOP
    SELECT array_agg(id ORDER BY id) INTO batch
    FROM (SELECT id FROM forms WHERE id > position ORDER BY id LIMIT 2000 FOR KEY SHARE) f;
    EXIT WHEN batch IS NULL;
    INSERT INTO subscriber_checks (form_id, due)
    SELECT id, created FROM forms WHERE id = ANY (batch) AND subscriber_id IS NOT NULL AND created <= until
    ON CONFLICT (form_id) DO NOTHING;
    position := batch[cardinality(batch)];
    COMMIT;
  END LOOP;
END $$;
