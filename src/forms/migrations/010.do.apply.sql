-- Tables of the intake application for the applicant's pages. They hold no addresses and no codes, only HMACs of them.
-- Rows lose their meaning within an hour; statements that add a row remove some that are older.

-- Drafts created in a window of time, by limit and key (a client network, an email address, a tenant).
CREATE TABLE apply_counts (
  name text NOT NULL,
  key bytea NOT NULL,
  window_start timestamptz NOT NULL,
  used integer NOT NULL,
  PRIMARY KEY (name, key, window_start)
);
CREATE INDEX apply_counts_by_window ON apply_counts (window_start);

-- Codes that were entered in a browser, so that no other browser can use them.
CREATE TABLE apply_codes (
  form_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  browser_hash bytea NOT NULL,
  used timestamptz NOT NULL,
  -- The code was right. Until then, the browser's failed attempt can release it.
  accepted boolean NOT NULL DEFAULT false,
  PRIMARY KEY (form_id, code_hash)
);
CREATE INDEX apply_codes_by_use ON apply_codes (used);

-- The last save of a form, so that a browser whose connection broke can find out that it was done.
CREATE TABLE apply_saves (
  form_id uuid PRIMARY KEY,
  save_hash bytea NOT NULL,
  etag text NOT NULL,
  saved timestamptz NOT NULL
);
CREATE INDEX apply_saves_by_time ON apply_saves (saved);
