-- A registration counts the outstanding work of its tenant. Without these indexes, it would read the work of all tenants.
CREATE INDEX client_deletions_of_client ON client_deletions (tenant_id, client_id);
CREATE INDEX client_events_of_tenant ON client_events (tenant_id);
