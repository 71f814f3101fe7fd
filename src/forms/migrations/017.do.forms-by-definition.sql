-- Runs outside of a transaction, because it takes minutes if there are millions of forms. Saves continue meanwhile.

-- Lists by definition, which otherwise read all forms of the tenant to find those of a rare definition.
CREATE INDEX CONCURRENTLY IF NOT EXISTS forms_by_definition ON forms (tenant_id, definition_id, created, id);
