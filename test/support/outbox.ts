// Shared by the outbox tests: a database with forms and outbox rows, and a local server that stands in for the
// receiving services. The server keeps each request. It responds over real HTTP, so the tests use the real platform
// clients.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import pg from 'pg';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import type { OutboxKind } from '../../src/forms/outbox/event-catalogue.ts';
import type { OutboxFacts } from '../../src/forms/outbox/outbox.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer } from './loopback-server.ts';
import { createTestDatabase, cutDatabase, restoreDatabase } from './postgres.ts';

const testTenant = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';

export interface OutboxDatabase {
  url: string;
  pool: pg.Pool;
  addForm(changes?: {
    id?: string;
    channels?: { channel: string; address: string }[];
    at?: Date;
    data?: object;
    tenantId?: string | undefined;
  }): Promise<string>;
  addRow(formId: string, kind: OutboxKind, options?: { facts?: Partial<OutboxFacts>; at?: Date }): Promise<string>;
  removeForm(formId: string): Promise<void>;
  undelivered(): Promise<number>;
  /** Closes every connection to the database and refuses new ones, like a stopped server, until `restore`. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function createOutboxDatabase(): Promise<OutboxDatabase> {
  const { url, drop } = await createTestDatabase(formMigrations.directory);
  const pool = new pg.Pool({ connectionString: url, max: 6 });
  pool.on('error', () => undefined);
  return {
    url,
    pool,
    async addForm({ id = randomUUID(), channels = [], at = new Date(), data = {}, tenantId = testTenant } = {}) {
      await pool.query(
        `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
           anonymous_applicant, one_per_applicant, last_accessed, applicant, data)
         VALUES ($1, $2, 'permit', 'Draft', $3, '{"id":"subject-1","name":"Intake"}', 'core', true, false, $3, $4, $5)`,
        [id, tenantId, at, { addressAs: 'Ana', channels }, data],
      );
      return id;
    },
    async addRow(formId, kind, { facts = {}, at = new Date() } = {}) {
      const { rows } = await pool.query<{ sequence: string }>(
        `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
         VALUES ($1, coalesce((SELECT tenant_id FROM forms WHERE id = $1), $2), $3, $4, $5, $5) RETURNING sequence`,
        [formId, testTenant, kind, { definitionId: 'permit', ...facts }, at],
      );
      return rows[0]?.sequence ?? '';
    },
    async removeForm(formId) {
      await pool.query('DELETE FROM forms WHERE id = $1', [formId]);
    },
    async undelivered() {
      const { rows } = await pool.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM outbox WHERE accepted IS NULL',
      );
      return rows[0]?.count ?? 0;
    },
    cut: () => cutDatabase(url),
    restore: () => restoreDatabase(url),
    async close() {
      await pool.end();
      await drop();
    },
  };
}

export interface Received {
  method: string;
  /** Without the query. */
  path: string;
  body: Record<string, unknown>;
}

export interface Sink {
  url: string;
  received: Received[];
  /** Sets how to respond to requests. By default, each request is accepted, and each user id gets one subscriber. */
  answer(decide: (request: Received) => { status: number; body?: unknown } | undefined | Promise<undefined>): void;
  /** Refuses connections until `up` is called. */
  down(): Promise<void>;
  up(): Promise<void>;
  close(): Promise<void>;
}

export async function startSink(): Promise<Sink> {
  const received: Received[] = [];
  const subscribers = new Map<string, string>();
  let decide: Parameters<Sink['answer']>[0] = () => undefined;

  function usual({ path, method, body }: Received): { status: number; body?: unknown } {
    if (!path.includes('/subscriptions') || method !== 'POST') return { status: 200, body: {} };
    const userId = String(body.userId);
    const id = subscribers.get(userId) ?? String(subscribers.size + 1).padStart(24, '0');
    subscribers.set(userId, id);
    const subscriber = { id, channels: [] };
    return { status: 200, body: { subscriberId: id, typeId: 'form-status-updates', subscriber } };
  }

  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const body = text ? (JSON.parse(text) as Record<string, unknown>) : {};
    const entry = { method: request.method ?? '', path: (request.url ?? '').split('?', 1)[0] ?? '', body };
    received.push(entry);
    const { status, body: answer } = (await decide(entry)) ?? usual(entry);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}));
  };

  const handle = (request: IncomingMessage, response: ServerResponse) => {
    listener(request, response).catch(() => response.destroy());
  };
  let server = createHttpServer(handle);
  const port = await listenOnLowPort(server);
  const shut = () => closeServer(server);
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answer(next) {
      decide = next;
    },
    down: shut,
    async up() {
      server = createHttpServer(handle);
      await listenAt(server, port);
    },
    close: shut,
  };
}
