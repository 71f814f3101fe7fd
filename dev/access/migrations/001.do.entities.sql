-- What the embedded access service must not forget at a restart.
CREATE TABLE entities (
  realm text NOT NULL,
  kind text NOT NULL,
  id text NOT NULL,
  -- Text, not jsonb: a request parameter may hold U+0000, which jsonb refuses.
  payload text NOT NULL,
  uid text,
  grant_id text,
  consumed timestamptz,
  expires timestamptz,
  PRIMARY KEY (realm, kind, id)
);

CREATE INDEX entities_uid ON entities (realm, kind, uid) WHERE uid IS NOT NULL;
CREATE INDEX entities_grant ON entities (realm, kind, grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX entities_expires ON entities (expires) WHERE expires IS NOT NULL;

CREATE TABLE signing_keys (
  realm text PRIMARY KEY,
  key jsonb NOT NULL
);
