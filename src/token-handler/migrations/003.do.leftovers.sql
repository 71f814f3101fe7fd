-- What the token handler knows about clients at the identity provider that it cannot manage: leftovers of its own
-- attempts, and clients that an administrator provided.

-- The name of the client at the identity provider. It contains the id of the attempt, so that an administrator can tell
-- the attempts apart. Null for clients of older versions, whose name is their client_id.
ALTER TABLE registration_attempts ADD COLUMN client_name text;
-- True if the attempt has failed and may have left a client.
ALTER TABLE registration_attempts ADD COLUMN failed boolean NOT NULL DEFAULT false;
ALTER TABLE client_deletions ADD COLUMN client_name text;
ALTER TABLE client_registrations
  ADD COLUMN client_name text,
  -- kept: the registration access token is stored. lost: it was replaced, and the response with the new one was lost.
  -- unsupported: the identity provider issued none (RFC 7592 is optional). provided: an administrator created the client,
  -- which is never changed or deleted. Without a token, registration_access_token seals an empty text and
  -- registration_client_uri may be empty, so that older versions can still read the row.
  ADD COLUMN management text NOT NULL DEFAULT 'kept'
    CHECK (management IN ('kept', 'lost', 'unsupported', 'provided')),
  -- The issuer that the operator had mapped to the tenant; null for the realm of the access service. With another
  -- mapping, the row does not count as a registration, so that its secret is not sent to another identity provider.
  ADD COLUMN issuer text,
  -- How the client authenticates at the token endpoint.
  ADD COLUMN authentication text NOT NULL DEFAULT 'client_secret_basic'
    CHECK (authentication IN ('client_secret_basic', 'client_secret_post'));
ALTER TABLE client_deletions ADD COLUMN issuer text;
ALTER TABLE registration_attempts ADD COLUMN issuer text;

-- Clients of our own attempts that may exist at the identity provider and that nothing manages.
CREATE TABLE client_leftovers (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  tenant_id text NOT NULL,
  client_id text NOT NULL,
  realm text NOT NULL,
  issuer text,
  client_name text NOT NULL,
  -- Null if the response that contained them was lost.
  oidc_client_id text,
  registration_client_uri text,
  reason text NOT NULL CHECK (reason IN ('response-lost', 'token-lost', 'token-refused', 'no-token')),
  created timestamptz NOT NULL
);

CREATE INDEX client_leftovers_by_client ON client_leftovers (tenant_id, client_id, created DESC);
