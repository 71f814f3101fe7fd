-- The id of the request that wrote the row. Its delivery sends it as X-Request-Id and names it in log lines. Null if no
-- request wrote the row.
ALTER TABLE outbox ADD COLUMN request_id text;
