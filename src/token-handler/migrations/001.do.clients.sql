-- What the token handler keeps of clients. Secrets and registration access tokens are sealed under the key ring, each
-- for its own row. Every timestamp is written by the service from its own clock.

-- The client at the access service that stands for a configured client in a tenant's realm.
CREATE TABLE client_registrations (
  tenant_id text NOT NULL,
  client_id text NOT NULL,
  -- The tenant's realm, in which the client is registered.
  realm text NOT NULL,
  oidc_client_id text NOT NULL,
  client_secret text NOT NULL,
  registration_access_token text NOT NULL,
  -- As the access service gave it; rebased onto ACCESS_SERVICE_URL when it is called.
  registration_client_uri text NOT NULL,
  redirect_uris jsonb NOT NULL,
  registered_at timestamptz NOT NULL,
  -- Counts changes, so that a late write does not undo a newer one.
  revision integer NOT NULL DEFAULT 1,
  PRIMARY KEY (tenant_id, client_id)
);

-- Which registration a back-channel logout is for.
CREATE INDEX client_registrations_by_oidc_client ON client_registrations (tenant_id, oidc_client_id);

-- Clients at the access service that were replaced and are still to be deleted there.
CREATE TABLE client_deletions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id text NOT NULL,
  client_id text NOT NULL,
  realm text NOT NULL,
  oidc_client_id text NOT NULL,
  registration_access_token text NOT NULL,
  registration_client_uri text NOT NULL,
  created timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);

CREATE INDEX client_deletions_due ON client_deletions (not_before);

-- Registrations that were begun. A row that stays is of one whose answer was lost: the access service may hold a client
-- that nobody has the secret of.
CREATE TABLE registration_attempts (
  id uuid PRIMARY KEY,
  tenant_id text NOT NULL,
  client_id text NOT NULL,
  realm text NOT NULL,
  started timestamptz NOT NULL
);

-- Events that the event service has not accepted yet.
CREATE TABLE client_events (
  id uuid PRIMARY KEY,
  tenant_id text NOT NULL,
  name text NOT NULL,
  payload jsonb NOT NULL,
  created timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);

CREATE INDEX client_events_due ON client_events (not_before);
