-- Items that cannot be processed because of themselves: forms that a statement of the expiry fails for, outbox rows that
-- a service refuses, core clients. Entries are deleted with their form.
CREATE TABLE quarantine (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text NOT NULL,
  item text NOT NULL,
  -- Null for what belongs to no tenant.
  tenant_id text,
  -- Ids only.
  about jsonb NOT NULL,
  form_id uuid GENERATED ALWAYS AS ((about ->> 'formId')::uuid) STORED,
  reason text NOT NULL,
  -- Codes and class names, never a message: messages quote content.
  detail text NOT NULL,
  first_seen timestamptz NOT NULL,
  last_tried timestamptz NOT NULL,
  attempts integer NOT NULL,
  -- The version of the product that tried it last. A newer one tries it once more.
  version text NOT NULL,
  released boolean NOT NULL DEFAULT false,
  UNIQUE (kind, item)
);

CREATE INDEX quarantine_by_age ON quarantine (first_seen DESC, id DESC);
CREATE INDEX quarantine_by_form ON quarantine (form_id, kind);

-- Definite refusals of the service, so far. A quarantined row waits until infinity.
ALTER TABLE outbox ADD COLUMN refusals integer NOT NULL DEFAULT 0;

-- Locked forms whose deletion is more than a day overdue, as the run left them; null when nobody looked.
ALTER TABLE reconciler_runs ADD COLUMN overdue_deletions integer;
