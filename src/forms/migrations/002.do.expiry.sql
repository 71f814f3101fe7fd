-- What the expiry of drafts and its runs need.

-- The walks of the expiry: one definition after the other, because each has periods of its own, oldest form first.
CREATE INDEX forms_drafts_to_expire ON forms (tenant_id, definition_id, last_accessed, id)
  WHERE status = 'Draft' AND NOT held;
CREATE INDEX forms_locked_to_expire ON forms (tenant_id, definition_id, locked, id)
  WHERE status = 'Locked' AND NOT held;
-- They walked all definitions at once, and every save paid for them. No statement of an older pod names them.
DROP INDEX forms_drafts_by_access;
DROP INDEX forms_locked_by_lock;

CREATE INDEX used_codes_by_age ON used_codes (session_until);

-- Whether the event service had accepted the form-locked of a form that the expiry deleted. True for every other form.
ALTER TABLE tombstones ADD COLUMN notified boolean NOT NULL DEFAULT true;

-- One run at a time. A run holds the generation that it made; each of its transactions asks for it and locks the row, so
-- that nobody else can take the turn before they have committed, and they can write nothing after somebody has.
CREATE TABLE reconciler_turn (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  generation bigint NOT NULL DEFAULT 0,
  -- Null when nobody holds it. A holder that died holds it no longer than this.
  held_until timestamptz
) WITH (fillfactor = 10); -- Renewed with every batch: versions stay on the page and are cleaned up there.

INSERT INTO reconciler_turn DEFAULT VALUES;

-- What each run did. The form service shows the last ones as metrics.
CREATE TABLE reconciler_runs (
  generation bigint PRIMARY KEY,
  started timestamptz NOT NULL,
  finished timestamptz NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'stopped')),
  -- Whether each part succeeded; null when the run left it out.
  expiry_succeeded boolean,
  clients_succeeded boolean,
  -- {outcome: count}
  counts jsonb NOT NULL,
  -- {"Ready=True": count}; null when the run did not look.
  conditions jsonb,
  -- When the draft that waits longest for its lock should have been locked; null when none waits, or nobody looked.
  oldest_overdue timestamptz
);

CREATE INDEX reconciler_runs_by_end ON reconciler_runs (finished);
