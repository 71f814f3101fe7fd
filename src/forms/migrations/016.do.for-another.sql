-- True if a clerk entered the form for someone else. Such a form does not count as the clerk's own application.
ALTER TABLE forms ADD COLUMN for_another boolean NOT NULL DEFAULT false;
