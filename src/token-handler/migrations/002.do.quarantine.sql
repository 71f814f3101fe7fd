-- Leftovers of registrations that cannot be finished: a client that cannot be deleted, an event that is refused. Their
-- rows wait until infinity.
CREATE TABLE quarantine (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text NOT NULL,
  item text NOT NULL,
  -- Null for what belongs to no tenant.
  tenant_id text,
  -- Ids only.
  about jsonb NOT NULL,
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

ALTER TABLE client_deletions ADD COLUMN refusals integer NOT NULL DEFAULT 0;
ALTER TABLE client_events ADD COLUMN refusals integer NOT NULL DEFAULT 0;
