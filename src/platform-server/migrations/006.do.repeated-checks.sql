-- HMAC of the code and the idempotency key of the check that verified it, so that the same check can be repeated.
ALTER TABLE codes ADD COLUMN verified_check bytea;
