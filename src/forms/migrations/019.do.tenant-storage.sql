-- How much the forms of each tenant occupy, as the last complete walk over them found, and the position of the walk that
-- is in progress. All pods share the walks.
CREATE TABLE tenant_storage (
  tenant_id text PRIMARY KEY,
  bytes bigint NOT NULL DEFAULT 0,
  -- When the last complete walk began. Writes after this time may be missing in `bytes`.
  measured timestamptz,
  -- When the walk that is in progress began. Null if there is none.
  walk_began timestamptz,
  walk_bytes bigint NOT NULL DEFAULT 0,
  -- The last form that the walk has visited.
  walk_created timestamptz NOT NULL DEFAULT '-infinity',
  walk_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
