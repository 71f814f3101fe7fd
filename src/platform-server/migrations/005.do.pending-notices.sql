-- Whether a subscriber still waits for notices: finds the events about its form that are not routed yet.
CREATE INDEX events_unrouted_by_correlation ON events (tenant, correlation_id) WHERE routed IS NULL;
