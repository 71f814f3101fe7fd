-- Tables of the form service. Every timestamp is written by the service from its own clock, so that a test can move it.

-- `data` and `files` are json, not jsonb: they are written and answered whole and never searched, json keeps them as
-- they were sent, and jsonb would spell a number such as 1e300 out in full, which turns 1 MiB into 50.
CREATE TABLE forms (
  id uuid PRIMARY KEY,
  tenant_id text NOT NULL,
  definition_id text NOT NULL,
  status text NOT NULL CHECK (status IN ('Draft', 'Locked', 'Submitted', 'Archived')),
  created timestamptz NOT NULL,
  -- {id, name}: the subject, which is unique only for its issuer.
  created_by jsonb NOT NULL,
  created_by_issuer text NOT NULL,
  -- Created by an intake application for an applicant without an account.
  anonymous_applicant boolean NOT NULL,
  -- The definition allowed this creator one form when it was created.
  one_per_applicant boolean NOT NULL,
  -- {addressAs?, channels: [{channel, address}]}
  applicant jsonb NOT NULL,
  -- Id at the notification service; set by the relay or by the first send-code.
  subscriber_id text,
  last_accessed timestamptz NOT NULL,
  -- When the warning before the lock was sent; void once last_accessed is later.
  warned timestamptz,
  locked timestamptz,
  submitted timestamptz,
  held boolean NOT NULL DEFAULT false,
  -- Counts changes of answers and of status; the ETag.
  revision bigint NOT NULL DEFAULT 1,
  data json NOT NULL DEFAULT '{}',
  files json NOT NULL DEFAULT '{}'
);

CREATE INDEX forms_by_creation ON forms (tenant_id, created DESC, id DESC);
CREATE INDEX forms_by_creator ON forms (tenant_id, definition_id, created_by_issuer, (created_by ->> 'id'))
  WHERE NOT anonymous_applicant;
CREATE UNIQUE INDEX forms_one_per_applicant ON forms (tenant_id, definition_id, created_by_issuer, (created_by ->> 'id'))
  WHERE one_per_applicant;
-- The two scans of the expiry.
CREATE INDEX forms_drafts_by_access ON forms (last_accessed, id) WHERE status = 'Draft' AND NOT held;
CREATE INDEX forms_locked_by_lock ON forms (locked, id) WHERE status = 'Locked' AND NOT held;

-- What the platform is still to be told, in order for each form. Holds no address, code or answer, and outlives the form.
CREATE TABLE outbox (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  form_id uuid NOT NULL,
  tenant_id text NOT NULL,
  kind text NOT NULL,
  facts jsonb NOT NULL DEFAULT '{}',
  -- The service that a row is meant for.
  lane text NOT NULL GENERATED ALWAYS AS (
    CASE WHEN kind IN ('subscribe', 'remove-subscriber') THEN 'notifications'
      WHEN kind = 'remove-files' THEN 'files' ELSE 'events' END) STORED,
  created timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  claimed_until timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  accepted timestamptz
) WITH (fillfactor = 85); -- A claim changes no indexed column: with room on the page it writes no index.

CREATE INDEX outbox_due ON outbox (lane, not_before, sequence) WHERE accepted IS NULL;
-- Which row of a form is next, and whether its form-locked was accepted: the gate before its deletion.
CREATE INDEX outbox_by_form ON outbox (form_id, sequence);

-- An answer that a repeated request gets again. Key and body are kept as HMACs only.
CREATE TABLE idempotency_keys (
  tenant_id text NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  route text NOT NULL,
  key_hash bytea NOT NULL,
  body_hash bytea NOT NULL,
  form_id uuid NOT NULL REFERENCES forms (id) ON DELETE CASCADE,
  answer json NOT NULL,
  created timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, issuer, subject, route, key_hash)
);

CREATE INDEX idempotency_keys_by_form ON idempotency_keys (form_id);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created);

-- Every code that was accepted once, as an HMAC, and the read session that it opened for one service account.
CREATE TABLE used_codes (
  form_id uuid NOT NULL REFERENCES forms (id) ON DELETE CASCADE,
  code_hash bytea NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  session_until timestamptz NOT NULL,
  PRIMARY KEY (form_id, code_hash)
);

-- The failure budget: one row for each code that is being checked or was wrong. An address is an HMAC, and its rows
-- outlive the form, so that deleting a form renews no budget.
CREATE TABLE code_attempts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  form_id uuid REFERENCES forms (id) ON DELETE SET NULL,
  address_hash bytea NOT NULL,
  code_hash bytea NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  attempted timestamptz NOT NULL,
  wrong boolean NOT NULL DEFAULT false
);

CREATE INDEX code_attempts_by_form ON code_attempts (form_id, attempted);
CREATE INDEX code_attempts_by_address ON code_attempts (address_hash, attempted);
CREATE INDEX code_attempts_by_age ON code_attempts (attempted);

-- Codes sent or being sent.
CREATE TABLE code_sends (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  form_id uuid REFERENCES forms (id) ON DELETE SET NULL,
  address_hash bytea NOT NULL,
  sent timestamptz NOT NULL
);

CREATE INDEX code_sends_by_form ON code_sends (form_id, sent);
CREATE INDEX code_sends_by_address ON code_sends (address_hash, sent);
CREATE INDEX code_sends_by_age ON code_sends (sent);

-- What is left of a deleted form for 30 days: nothing of the applicant.
CREATE TABLE tombstones (
  form_id uuid PRIMARY KEY,
  tenant_id text NOT NULL,
  definition_id text NOT NULL,
  anonymous_applicant boolean NOT NULL,
  deleted timestamptz NOT NULL
);

CREATE INDEX tombstones_by_age ON tombstones (deleted);
