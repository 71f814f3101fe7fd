-- What happened to a form, oldest first: [event, time, role, pseudonym of the account]. No personal data. It is in the
-- form's row, so that the change of a form and its entry are one write, and the deletion of the form deletes it.
ALTER TABLE forms ADD COLUMN history jsonb NOT NULL DEFAULT '[]';
