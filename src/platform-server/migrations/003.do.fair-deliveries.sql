-- Whose delivery it is, so that the deliveries of a tenant can be counted. Unknown for deliveries of older pods.
ALTER TABLE deliveries ADD COLUMN tenant text;
CREATE INDEX deliveries_tenant ON deliveries (tenant);
