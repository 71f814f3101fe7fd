-- Mails that tell of a created draft, by address: one row each, so that creates at the same time wait for each other.
-- An address is an HMAC. Apart from code_sends, because they never delay a code.
CREATE TABLE created_notices (
  address_hash bytea PRIMARY KEY,
  latest timestamptz NOT NULL,
  -- Those of the last hour, and perhaps older ones.
  sent timestamptz[] NOT NULL
);

CREATE INDEX created_notices_by_age ON created_notices (latest);
