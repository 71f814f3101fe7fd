-- The W3C traceparent of the request that wrote the row, if that request is traced: the trace of its delivery links to it.
ALTER TABLE outbox ADD COLUMN traceparent text;
