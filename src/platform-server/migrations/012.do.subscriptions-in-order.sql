-- Runs outside of a transaction, because it takes long if there are millions of subscriptions. Writes continue meanwhile.

-- The subscriptions to a type, in pages.
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_in_order ON subscriptions (tenant, type_id, subscriber_id);
