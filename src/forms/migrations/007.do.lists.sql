-- Why an administrator holds a form, and who does: {id, name}.
ALTER TABLE forms ADD COLUMN hold_reason text, ADD COLUMN held_by jsonb;

-- The default periods of a run in milliseconds, so that the form service tells the dates by which the expiry works.
ALTER TABLE reconciler_runs ADD COLUMN retention jsonb;
