// Tests TLS to a real Postgres. No public authority has signed the certificate of this server.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import type { EmbeddedPostgres } from '../../../dev/postgres/ownership.ts';
import { placePostgres, startPostgres } from '../../../dev/postgres/postgres.ts';
import { findUnprivilegedUser } from '../../../dev/postgres/unprivileged-user.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createCertificate, type TestCertificate } from '../../../test/support/certificate.ts';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createMetrics } from '../operations/metrics.ts';
import { explainDatabaseFailure } from './database-failure.ts';
import { createPool, databaseProblem } from './postgres.ts';

let folder: string;
let postgres: EmbeddedPostgres;
let files: TestCertificate;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-tls-'));
  // If root runs the test, Postgres runs under another account. This account must be able to enter the folder and to
  // read the key.
  chmodSync(folder, 0o755);
  files = createCertificate(folder);
  const user = await findUnprivilegedUser();
  if (user) chownSync(files.keyFile, user.uid, user.gid);
  postgres = await startPostgres({
    ...{ directory: join(folder, 'postgres'), password: randomBytes(16).toString('hex') },
    settings: { fsync: 'off', ssl: 'on', ssl_cert_file: files.certificateFile, ssl_key_file: files.keyFile },
  });
});
afterAll(async () => {
  await postgres.stop();
  rmSync(await placePostgres(join(folder, 'postgres')), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

async function listen(server: Server): Promise<number> {
  onTestFinished(() => closeServer(server));
  return listenOnLoopback(server);
}

function connectTo(url: string) {
  const { log, lines } = captureLog();
  const metrics = createMetrics();
  const pool = createPool({ url, size: 2, log, metrics });
  onTestFinished(() => pool.end());
  return { pool, lines, metrics };
}

function connect(query: string) {
  const { pool, lines, metrics } = connectTo(`${postgres.url}?${query}`);
  const isEncrypted = async () => {
    const sql = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
    return (await pool.query<{ ssl: boolean }>(sql)).rows[0]?.ssl;
  };
  return { isEncrypted, lines, metrics };
}

it('verify-full with the certificate of the authority connects by TLS, and exports when the certificate expires', async () => {
  const { isEncrypted, lines, metrics } = connect(`sslmode=verify-full&sslrootcert=${files.certificateFile}`);
  expect(await isEncrypted()).toBe(true);
  expect(lines()).toEqual([]);
  const [, expiry] = /certificate="postgres"\} (\d+)/.exec(await metrics.registry.metrics()) ?? [];
  expect(Number(expiry) - Date.now() / 1_000).toBeGreaterThan(80_000);
});

const failureOf = (work: Promise<unknown>) => work.catch((error: unknown) => error);

it('verify-full without it does not connect: requests get 503, and operators read why', async () => {
  const failure = await failureOf(connect('sslmode=verify-full').isEncrypted());
  expect(failure).toBeInstanceOf(Error);
  expect(databaseProblem(failure)).toMatchObject({ status: 503 });
  expect(explainDatabaseFailure(failure)).toBe('its certificate is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)');
});

it('a certificate for another host is not accepted', async () => {
  const other = createCertificate(mkdtempSync(join(folder, 'other-')), { host: 'db.example.org' });
  const server = createTlsServer({ key: other.key, cert: other.certificate });
  // A client of Postgres first asks for TLS, in eight bytes. This server responds with S, for yes.
  const port = await listen(
    createTcpServer((socket) => {
      socket.once('data', () => {
        socket.write('S');
        server.emit('connection', socket);
      });
    }),
  );
  const url = `postgres://someone@127.0.0.1:${port}/forms?sslmode=verify-full&sslrootcert=${other.certificateFile}`;
  const failure = await failureOf(connectTo(url).pool.query('SELECT 1'));
  expect(databaseProblem(failure)).toMatchObject({ status: 503 });
  expect(explainDatabaseFailure(failure)).toBe('its certificate is not accepted (ERR_TLS_CERT_ALTNAME_INVALID)');
});

it('a server without TLS is not used if the URL requires TLS', async () => {
  const plain = new URL(inject('postgresUrl'));
  plain.search = 'sslmode=verify-full';
  const failure = await failureOf(connectTo(plain.href).pool.query('SELECT 1'));
  expect(databaseProblem(failure)).toMatchObject({ status: 503 });
  expect(explainDatabaseFailure(failure)).toBe('it offers no TLS');
});

it('no-verify connects by TLS, with one warning', async () => {
  const { isEncrypted, lines } = connect('sslmode=no-verify');
  expect(await Promise.all([isEncrypted(), isEncrypted()])).toEqual([true, true]);
  expect(lines()).toMatchObject([
    {
      ...{ level: 'warn', dependency: 'postgres', reason: expect.stringContaining('SELF_SIGNED') },
      msg: 'the certificate of Postgres is invalid, but DATABASE_URL accepts any',
    },
  ]);
});

it('the warning is not part of the data that a command prints', async () => {
  const entry = join(import.meta.dirname, '../../image/main.ts');
  const env = { ...process.env, DATABASE_URL: `${postgres.url}?sslmode=no-verify` };
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [entry, ...args], { env });
  await run('migrate', 'forms');
  for (const args of [
    ['erasures', 'export'],
    ['quarantine', 'list', '--json'],
  ]) {
    const { stdout, stderr } = await run(...args);
    expect(stdout).toBe('');
    expect(JSON.parse(stderr)).toMatchObject({ level: 'warn', dependency: 'postgres' });
  }
});
