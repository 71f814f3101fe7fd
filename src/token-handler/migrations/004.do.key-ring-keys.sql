-- When each key of the key ring was first seen, by its name, so that an operator is told of a key that is due for rotation.
-- The keys themselves are never stored.
CREATE TABLE key_ring_keys (
  name text PRIMARY KEY,
  first_seen timestamptz NOT NULL
);
