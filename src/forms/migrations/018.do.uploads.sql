-- The files that the intake application uploaded for a form: {id: {size, time, urn}}. An upload that is in progress, or
-- whose outcome is unknown, has no urn. It is in the form's row, so that the deletion of the form always sees its latest
-- state, and so that concurrent uploads cannot exceed the limits together.
ALTER TABLE forms ADD COLUMN uploads jsonb NOT NULL DEFAULT '{}';
