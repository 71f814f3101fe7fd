-- What the event is about, so that the notices of a form reach a subscriber in the order of its events. Unknown for
-- deliveries of older pods.
ALTER TABLE deliveries ADD COLUMN correlation_id text;
CREATE INDEX deliveries_in_order ON deliveries (subscriber_id, correlation_id, event);
-- The new index begins with the same column.
DROP INDEX deliveries_subscriber;
