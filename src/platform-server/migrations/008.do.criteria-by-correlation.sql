-- Runs outside of a transaction, because it takes long if there are millions of criteria. Writes continue meanwhile.

-- Finds the criteria of a tenant with the same correlation id, or without one, in one type or in all of them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscription_criteria_by_correlation
  ON subscription_criteria (tenant, correlation_id, type_id);
---
-- The new index also serves the queries of this one.
DROP INDEX CONCURRENTLY IF EXISTS subscription_criteria_match;
