-- An outbox that holds a million rows.

-- A claim changes no indexed column, and claims take all rows of a page at once: only with room for another version of
-- each does it write no index. Of old pages this is true when they are written anew.
--
-- What is accepted leaves dead entries at the head of outbox_due. A fifth of the table, as the server would wait for, is
-- too many of them.
ALTER TABLE outbox SET (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_analyze_threshold = 10000
);
