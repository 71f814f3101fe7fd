-- The tables of the platform's services. A tenant is written by its id, the last segment of its URN; core
-- configuration has the tenant 'core', which cannot be such an id.

CREATE TABLE tenants (
  id text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{24}$'),
  name text NOT NULL,
  realm text NOT NULL UNIQUE,
  admin_email text
);
CREATE UNIQUE INDEX tenants_name ON tenants (lower(name));

-- An entry of an API has the service 'service:api'.
CREATE TABLE directory_entries (
  namespace text COLLATE "C" NOT NULL,
  service text COLLATE "C" NOT NULL,
  url text NOT NULL,
  PRIMARY KEY (namespace, service)
);

-- The row that every write of a configuration locks, and the pin.
CREATE TABLE configurations (
  tenant text COLLATE "C" NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  active integer,
  PRIMARY KEY (tenant, namespace, name)
);

-- json, not jsonb: a value is given back as it was written, the order of its members included.
CREATE TABLE configuration_revisions (
  tenant text COLLATE "C" NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  revision integer NOT NULL,
  created timestamptz NOT NULL,
  last_updated timestamptz NOT NULL,
  configuration json NOT NULL,
  PRIMARY KEY (tenant, namespace, name, revision),
  FOREIGN KEY (tenant, namespace, name) REFERENCES configurations ON DELETE CASCADE
);

-- An accepted event stays until it is routed and everything that it caused is delivered.
CREATE TABLE events (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL,
  tenant text NOT NULL,
  namespace text NOT NULL,
  name text NOT NULL,
  occurred timestamptz NOT NULL,
  correlation_id text,
  context jsonb NOT NULL,
  payload json NOT NULL,
  accepted timestamptz NOT NULL,
  routed timestamptz
);
CREATE INDEX events_unrouted ON events (accepted) WHERE routed IS NULL;
CREATE INDEX events_routed ON events (routed) WHERE routed IS NOT NULL;

-- Outlives its event, so that a late repeat is still recognised.
CREATE TABLE event_keys (
  tenant text NOT NULL,
  namespace text NOT NULL,
  key text NOT NULL,
  accepted timestamptz NOT NULL,
  PRIMARY KEY (tenant, namespace, key)
);
CREATE INDEX event_keys_accepted ON event_keys (accepted);

CREATE TABLE subscribers (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  user_id text,
  address_as text NOT NULL,
  created timestamptz NOT NULL,
  UNIQUE (tenant, user_id)
);

CREATE TABLE subscriber_channels (
  subscriber_id text NOT NULL REFERENCES subscribers ON DELETE CASCADE,
  channel text NOT NULL,
  address text NOT NULL,
  position integer NOT NULL,
  verified boolean NOT NULL DEFAULT false,
  PRIMARY KEY (subscriber_id, channel, address)
);

-- everything: matches each event of the type; otherwise one of its criteria must match.
CREATE TABLE subscriptions (
  subscriber_id text NOT NULL REFERENCES subscribers ON DELETE CASCADE,
  type_id text COLLATE "C" NOT NULL,
  tenant text NOT NULL,
  everything boolean NOT NULL,
  PRIMARY KEY (subscriber_id, type_id)
);
CREATE INDEX subscriptions_everything ON subscriptions (tenant, type_id) WHERE everything;

CREATE TABLE subscription_criteria (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subscriber_id text NOT NULL,
  type_id text COLLATE "C" NOT NULL,
  tenant text NOT NULL,
  description text,
  correlation_id text,
  context jsonb NOT NULL,
  FOREIGN KEY (subscriber_id, type_id) REFERENCES subscriptions ON DELETE CASCADE
);
CREATE INDEX subscription_criteria_of ON subscription_criteria (subscriber_id, type_id);
CREATE INDEX subscription_criteria_match ON subscription_criteria (tenant, type_id, correlation_id);

-- digest: an HMAC, never the code; null once the code was used, removed or has failed too often.
CREATE TABLE codes (
  subscriber_id text NOT NULL,
  channel text NOT NULL,
  address text NOT NULL,
  digest bytea,
  expires timestamptz NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  PRIMARY KEY (subscriber_id, channel, address),
  FOREIGN KEY (subscriber_id, channel, address) REFERENCES subscriber_channels ON DELETE CASCADE
);

-- What is still to be delivered: ids only; address and text are made at delivery.
-- refused: the mail server said no to this message (5xx), as against not being there.
CREATE TABLE deliveries (
  event bigint NOT NULL REFERENCES events ON DELETE CASCADE,
  type_id text NOT NULL,
  subscriber_id text NOT NULL REFERENCES subscribers ON DELETE CASCADE,
  created timestamptz NOT NULL,
  refused boolean NOT NULL DEFAULT false,
  PRIMARY KEY (event, type_id, subscriber_id)
);
CREATE INDEX deliveries_created ON deliveries (created);
CREATE INDEX deliveries_subscriber ON deliveries (subscriber_id);

-- A pool of workers that is alive says so; what a dead one has locked is freed.
CREATE TABLE worker_pools (
  id text PRIMARY KEY,
  seen timestamptz NOT NULL
);
