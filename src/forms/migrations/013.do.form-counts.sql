-- The number of forms by status after a run, which the form service exports as a metric. Null if the run did not count.
ALTER TABLE reconciler_runs ADD COLUMN forms_by_status jsonb;
