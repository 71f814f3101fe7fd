// Stores leftovers: clients that a registration may have left at the identity provider, and that nothing manages. An
// administrator can find and delete these clients. The row of a leftover is removed when the client has been deleted,
// when an administrator has registered the client, or when the retention period is over. A client to delete is
// identified only by its recorded URI, never by its name.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Owner } from './registration-store.ts';

/**
 * Why a client may be left at the identity provider:
 * - `response-lost`: the response to a registration did not arrive
 * - `token-lost`: the registration access token of a replaced client was lost
 * - `token-refused`: the identity provider refused the token of a replaced client
 * - `no-token`: the identity provider issued no token for a replaced client
 * - `deletion-pending`: the deletion of a replaced client is still scheduled
 */
export const leftoverReasons = [
  'response-lost',
  'token-lost',
  'token-refused',
  'no-token',
  'deletion-pending',
] as const;

export type LeftoverReason = (typeof leftoverReasons)[number];

export interface LeftoverClient {
  /** Name of the client at the identity provider. */
  clientName: string;
  /** Id of the client at the identity provider. Null if the response that contained this id was lost. */
  clientId: string | null;
  realm: string;
  reason: LeftoverReason;
  created: Date;
}

/**
 * A leftover with a recorded URI. It can be deleted with an administrator's token, if the identity provider permits it.
 */
export interface DeletableClient {
  id: string;
  oidcClientId: string;
  registrationClientUri: string;
}

/** An attempt to register a client. Its outcome is unknown, so the client may exist at the identity provider. */
export interface LostAttempt {
  tenant: string;
  client: string;
  clientName: string;
  realm: string;
  started: Date;
}

/** A replaced client whose deletion the identity provider refused. */
export type RefusedDeletion = Owner & {
  clientName: string | null;
  oidcClientId: string;
  registrationClientUri: string;
};

export type LeftoverClients = ReturnType<typeof createLeftoverClients>;

const mostListed = 100;
/** Maximum number of leftovers of a tenant that are kept when old ones are removed. */
const mostKept = 1_000;
/** Maximum number of leftovers that one registration tries to delete. */
const mostDeleted = 10;

/** The requester of statements that belong to no single tenant. */
const background = { tenant: '', member: '' };

export function createLeftoverClients(pool: Pick<SharedPool, 'query'>) {
  return {
    /** Lists at most 100 leftovers of a client, newest first. */
    async list(tenantId: string, clientId: string): Promise<LeftoverClient[]> {
      const requester = { tenant: tenantId, member: clientId };
      return (await pool.query<LeftoverClient>(requester, listSql, [tenantId, clientId, mostListed])).rows;
    },
    /**
     * Turns failed attempts to register a client, and attempts that started before `before`, into leftovers. Returns
     * each attempt to only one pod.
     */
    async recordLostAttempts(before: Date): Promise<LostAttempt[]> {
      return (await pool.query<LostAttempt>(background, lostSql, [before])).rows;
    },
    /** Records a replaced client whose token the identity provider refused. */
    async recordRefused(deletion: RefusedDeletion, now: Date): Promise<void> {
      const { tenantId, clientId, realm, issuer, clientName, oidcClientId, registrationClientUri } = deletion;
      const name = clientName ?? clientId;
      const values = [tenantId, clientId, realm, issuer, name, oidcClientId, registrationClientUri, now];
      await pool.query(background, refusedSql, values);
    },
    /** Returns at most 10 leftovers of a client that have a recorded URI and are not currently registered. */
    async deletable({ tenantId, clientId, realm, issuer }: Owner): Promise<DeletableClient[]> {
      const parameters = [tenantId, clientId, realm, issuer, mostDeleted];
      return (await pool.query<DeletableClient>({ tenant: tenantId, member: clientId }, deletableSql, parameters)).rows;
    },
    async forget(id: string): Promise<void> {
      await pool.query(background, 'DELETE FROM client_leftovers WHERE id = $1', [id]);
    },
    async count(): Promise<number> {
      const sql = 'SELECT count(*)::int AS count FROM client_leftovers';
      const { rows } = await pool.query<{ count: number }>(background, sql, []);
      return rows[0]?.count ?? 0;
    },
    /** Removes leftovers that were created before `before`, and all but the newest 1,000 of each tenant. */
    async prune(before: Date): Promise<void> {
      await pool.query(background, pruneSql, [before, mostKept]);
    },
  };
}

const listSql = `
SELECT client_name AS "clientName", oidc_client_id AS "clientId", realm, reason, created
FROM client_leftovers WHERE tenant_id = $1 AND client_id = $2
UNION ALL
SELECT coalesce(client_name, client_id), oidc_client_id, realm, 'deletion-pending', created
FROM client_deletions d WHERE tenant_id = $1 AND client_id = $2 AND registration_client_uri <> ''
  AND NOT EXISTS (SELECT FROM client_registrations r
    WHERE r.tenant_id = d.tenant_id AND r.oidc_client_id = d.oidc_client_id)
ORDER BY created DESC LIMIT $3`;

// Older versions of the token handler recorded attempts without a client name. Leftovers of such attempts get the
// client's id as their name, so several leftovers of a client may have the same name.
const lostSql = `
WITH lost AS (DELETE FROM registration_attempts WHERE started < $1 OR failed RETURNING *),
recorded AS (
  INSERT INTO client_leftovers (id, tenant_id, client_id, realm, issuer, client_name, reason, created)
  SELECT id, tenant_id, client_id, realm, issuer, coalesce(client_name, client_id), 'response-lost', started FROM lost)
SELECT tenant_id AS tenant, client_id AS client, coalesce(client_name, client_id) AS "clientName", realm, started FROM lost`;

const refusedSql = `
INSERT INTO client_leftovers (tenant_id, client_id, realm, issuer, client_name, oidc_client_id,
  registration_client_uri, reason, created)
SELECT $1, $2, $3, $4, $5, $6, $7, 'token-refused', $8
WHERE NOT EXISTS (SELECT FROM client_leftovers WHERE tenant_id = $1 AND oidc_client_id = $6)`;

const pruneSql = `
WITH ranked AS (
  SELECT id, created, row_number() OVER (PARTITION BY tenant_id ORDER BY created DESC) AS nth FROM client_leftovers)
DELETE FROM client_leftovers WHERE id IN (SELECT id FROM ranked WHERE created < $1 OR nth > $2)`;

const deletableSql = `
SELECT id, oidc_client_id AS "oidcClientId", registration_client_uri AS "registrationClientUri"
FROM client_leftovers l
WHERE tenant_id = $1 AND client_id = $2 AND realm = $3 AND issuer IS NOT DISTINCT FROM $4
  AND oidc_client_id IS NOT NULL AND registration_client_uri IS NOT NULL
  AND NOT EXISTS (SELECT FROM client_registrations r
    WHERE r.tenant_id = l.tenant_id AND r.oidc_client_id = l.oidc_client_id)
ORDER BY created DESC LIMIT $5`;
