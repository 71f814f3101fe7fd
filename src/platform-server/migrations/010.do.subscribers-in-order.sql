-- Runs outside of a transaction, because it takes long if there are millions of subscriptions. Writes continue meanwhile.

-- The subscribers of a type to every event, in pages.
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_everything_in_order
  ON subscriptions (tenant, type_id, subscriber_id) WHERE everything;
---
-- The new index begins with the same columns.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_everything;
