-- Runs outside of a transaction, because it takes long if there are millions of keys. Writes continue meanwhile.

-- The keys of a tenant, newest first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_keys_of_tenant ON event_keys (tenant, accepted);
