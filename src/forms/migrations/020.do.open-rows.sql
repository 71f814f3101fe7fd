-- Runs outside of a transaction, because it takes long if there are millions of rows. Writes continue meanwhile.

-- Whether a form has an older row that is neither delivered nor in quarantine. Another index contains the accepted rows
-- too: a form that was submitted and returned in a loop has hundreds of thousands. Claims depend on the order of nulls.
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_open_by_form ON outbox (form_id, sequence DESC NULLS LAST)
  WHERE accepted IS NULL AND not_before < 'infinity';
