-- Domains that a tenant may send mail from, besides that of MAIL_FROM. Lower case.
ALTER TABLE tenants ADD COLUMN mail_domains text[] NOT NULL DEFAULT '{}';
