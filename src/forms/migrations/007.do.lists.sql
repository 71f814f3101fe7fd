-- Why an administrator holds a form, and who does: {id, name}.
ALTER TABLE forms ADD COLUMN hold_reason text, ADD COLUMN held_by jsonb;

-- The forms that a signed-in person created.
CREATE INDEX forms_of_creator ON forms (tenant_id, created_by_issuer, (created_by ->> 'id'), created, id)
  WHERE NOT anonymous_applicant;
-- Lists by status.
CREATE INDEX forms_by_status ON forms (tenant_id, status, created, id);

-- The default periods of a run in milliseconds, so that the form service tells the dates by which the expiry works.
ALTER TABLE reconciler_runs ADD COLUMN retention jsonb;
