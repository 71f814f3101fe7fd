-- The forms of an address, so that form-admin can search by it. An address is an HMAC that includes the tenant. A table of
-- its own: saves do not touch it, and filling it for existing forms changes no row of forms. A new, empty table needs only
-- a short lock on forms, for the foreign key.
CREATE TABLE applicant_addresses (
  form_id uuid NOT NULL REFERENCES forms (id) ON DELETE CASCADE,
  address_hash bytea NOT NULL,
  PRIMARY KEY (form_id, address_hash)
);

CREATE INDEX applicant_addresses_by_hash ON applicant_addresses (address_hash, form_id);

-- How far the form service has hashed the addresses of forms that were created before this table or under another key.
CREATE TABLE address_index (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Identifies the key of the hashes, without revealing it. Null before the first pod has started.
  key_id bytea,
  -- Forms up to this id are done.
  position uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  -- All forms were done once, under this key.
  complete boolean NOT NULL DEFAULT false,
  next_walk timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10); -- Updated with every batch: versions stay on the page and are cleaned up there.

INSERT INTO address_index DEFAULT VALUES;
