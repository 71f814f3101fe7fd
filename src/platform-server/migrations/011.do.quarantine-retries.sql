-- The versions of the product that have released the item for a retry, and those that had tried it before. None of them
-- releases it again.
ALTER TABLE quarantine ADD COLUMN retried_by text[] NOT NULL DEFAULT '{}';
