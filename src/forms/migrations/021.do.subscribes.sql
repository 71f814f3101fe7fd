-- Runs outside of a transaction, because it takes long if there are millions of rows. Writes continue meanwhile.

-- The last `subscribe` and the `form-deleted` of a form, even if the form has hundreds of thousands of other rows.
-- Acceptances depend on the order of nulls.
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_subscribes_by_form ON outbox (form_id, sequence DESC NULLS LAST)
  WHERE kind IN ('subscribe', 'form-deleted');
