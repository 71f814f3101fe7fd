// Tests `npm start` and `npm run demo`: the first start, a restart, a start after a kill, and a start with `--fresh`.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { checkLogFile } from '../test/support/output-check.ts';
import { createSiteBrowser } from '../test/support/site-browser.ts';
import { listen } from './listen.ts';
import { findFreePort } from './ports.ts';

const longestStart = 120_000;
let directory: string;
let port: number;
let running: Started | undefined;

interface Started {
  child: ChildProcess;
  output(): string;
  /** Sends the signal. Resolves to the exit code, or to the signal that ended the process. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-start-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(directory, 0o755);
  port = await findFreePort();
});
afterEach(async () => {
  await running?.end('SIGTERM');
  running = undefined;
  // Checks the log files of all processes after each test.
  const logs = join(directory, 'data/logs');
  for (const name of await readdir(logs).catch(() => []))
    expect(await checkLogFile(join(logs, name)), name).toEqual([]);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function run(script: string, args: string[] = [], env: Record<string, string> = {}, flags: string[] = []): Started {
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, script), ...args], {
    env: { ...process.env, PORT: String(port), FORMGATE_DATA: join(directory, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals | null>((done) => {
    child.on('close', (code, signal) => done(code ?? signal));
  });
  return {
    child,
    output: () => output,
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}

async function until(holds: () => boolean | Promise<boolean>, what: () => string, timeoutMs: number): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; !(await holds()); await delay(50)) {
    if (Date.now() > deadline) throw new Error(what());
  }
}

async function start(args: string[] = []): Promise<Started> {
  const started = run('main.ts', args);
  running = started;
  const isSettled = () => started.output().includes('Ctrl-C stops everything') || started.child.exitCode !== null;
  await until(isSettled, started.output, longestStart);
  expect(started.output()).toContain('Formgate is ready');
  return started;
}

const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
const mail = async () => ((await (await ask('/mailbox/messages')).json()) as unknown[]).length;

async function demo(): Promise<{ code: number | null; output: string }> {
  const started = run('demo.ts');
  await new Promise((done) => started.child.on('close', done));
  return { code: started.child.exitCode, output: started.output() };
}

/** Expects that an administrator can sign in to the console without any preparation. */
async function expectConsoleSignIn(): Promise<void> {
  const client = `http://localhost:${port}/token-handler/clients/formgate-console`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${client}/callback`, returnTo: '/console/demo' });
  const browser = createSiteBrowser();
  const form = await browser.follow(await browser.request(`${client}/auth?${query}`));
  const isConsole = (url: URL) => url.pathname.startsWith('/console');
  const sent = await browser.submit(form, { username: 'admin@example.com', password: 'admin' });
  expect((await browser.follow(sent, isConsole)).location?.pathname).toBe('/console/demo');
  const path = `http://localhost:${port}/token-handler/targets/form-service/form/v1/operations`;
  expect(JSON.parse((await browser.request(path)).text)).toMatchObject({ scope: 'tenant' });
}

/**
 * Expects that `npm start` writes a file with the environment of `npm run reconcile`, and removes this file when it
 * stops.
 */
async function expectReconcilerRuns(started: Started): Promise<void> {
  const file = join(directory, 'data/reconciler.env');
  const reconcile = async () => {
    const once = run('../reconciler/main.ts', [], {}, [`--env-file-if-exists=${file}`]);
    await new Promise((done) => once.child.on('close', done));
    return { code: once.child.exitCode, output: once.output() };
  };
  expect(await reconcile()).toEqual({
    code: 0,
    output: expect.stringMatching(/"outcome":"succeeded".*Succeeded in/),
  });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await started.end('SIGINT')).toBe(0);
  expect(await reconcile()).toEqual({ code: 1, output: expect.stringContaining('DATABASE_URL: is required') });
}

/** Runs the script of `helm test` against `npm start`. In place of the services, a test server reports `health`. */
async function helmTest(
  health: Record<string, boolean>,
  password = 'admin',
): Promise<{ code: number | null; output: string }> {
  const service = await listen((_request, response) => void response.end(JSON.stringify(health)));
  onTestFinished(service.close);
  const base = `http://localhost:${port}`;
  const direct = `http://127.0.0.1:${service.port}`;
  const signIn = {
    ...{ tenant: 'demo', clientId: 'demo-console', target: 'form-service', path: '/form/v1/forms?mine=true' },
    callbackUrl: `${base}/token-handler/clients/demo-console/callback`,
  };
  const question = {
    ...{ url: `http://127.0.0.1:${port}`, host: `localhost:${port}`, insecure: false, access: `${base}/auth`, signIn },
    ...{ register: {}, person: directory, direct: { forms: direct, tokenHandler: direct } },
  };
  const file = join(directory, 'question.json');
  await writeFile(file, JSON.stringify(question));
  await writeFile(join(directory, 'username'), 'admin@example.com');
  await writeFile(join(directory, 'password'), password);
  const script = run('../charts/formgate/files/test.mjs', [file], { TEST_RETRY_MS: '0' });
  await new Promise((done) => script.child.on('close', done));
  return { code: script.child.exitCode, output: script.output() };
}

/** Returns the messages of `npm start` about processes that exited. */
const exitsIn = ({ output }: Started) => output().match(/The [a-z ]+ exited \([^)]*\)/g) ?? [];

describe('npm start', { timeout: 3 * longestStart }, () => {
  it('starts from nothing, prints all addresses, and handles the whole life of a draft, a sign-in and a run of the reconciler', async () => {
    const started = await start();
    for (const text of [
      `http://localhost:${port}/docs`,
      'alice@example.com',
      'demo-intake-secret',
      'Token handler',
      'npm run demo',
    ]) {
      expect(started.output()).toContain(text);
    }
    expect((await ask('/health')).status).toBe(200);
    const { code, output } = await demo();
    expect(output).toContain('All steps succeeded');
    expect(code).toBe(0);
    // The demo prints the steps of the token handler: registration, sign-in, a target, CSRF, logout.
    for (const line of ['"registered": true', 'Set-Cookie: XSRF-TOKEN=', '← 403 Forbidden', '← 401 Unauthorized'])
      expect(output).toContain(line);
    expect(output).not.toMatch(/eyJ[\w-]{20}/);
    expect(output).not.toMatch(/(?:code|state|nonce)=[\w%-]{20}|(?:formgate_session|XSRF-TOKEN)=[\w%.-]{20}/);
    expect(await helmTest({ access: true, db: true })).toEqual({
      code: 0,
      output: expect.stringContaining(
        'passed  admin@example.com signs in with demo-console and calls the target form-service, and signs out',
      ),
    });
    expect(await helmTest({ access: false, db: true, redis: false }, 'wrong')).toEqual({
      code: 1,
      output: expect.stringMatching(
        /failed {2}the form service reaches what it needs: it cannot use: access, redis; its log says why[\s\S]*failed {2}admin@example.com signs in/,
      ),
    });
    await expectConsoleSignIn();
    await expectReconcilerRuns(started);
    expect(started.output()).toContain('Stopped.');
    await expect(ask('/health')).rejects.toThrow();
  });

  it('keeps its data over a restart, and survives a kill of a form service and a crash of a backend of its Postgres', async () => {
    const started = await start();
    const before = await mail();
    expect(before).toBeGreaterThanOrEqual(2);
    const [pid] = await childPids(started.child.pid ?? 0, 'forms/main.ts');
    process.kill(Number(pid), 'SIGKILL');
    await until(async () => (await ask('/health')).status === 503, started.output, longestStart);
    await until(async () => (await ask('/health')).status === 200, started.output, longestStart);
    const restarts = ['The form service exited (SIGKILL)'];
    expect(exitsIn(started)).toEqual(restarts);

    const file = join(directory, 'data/postgres/data/postmaster.pid');
    const [postmaster] = (await readFile(file, 'utf8')).split('\n');
    const [backend] = await childPids(Number(postmaster), 'formgate platform');
    process.kill(Number(backend), 'SIGKILL');
    await until(async () => isGone(Number(backend)), started.output, longestStart);
    await until(async () => (await ask('/health')).status === 200, started.output, longestStart);
    // Retries the demo, because the health of a service does not include its database, which may still be recovering.
    await until(async () => (await demo()).code === 0, started.output, longestStart);
    expect(await mail()).toBeGreaterThan(before);
    expect(exitsIn(started)).toEqual(restarts);
    expect(started.child.exitCode).toBeNull();
  });

  it('starts again after it was killed itself, and leaves no process behind', async () => {
    const started = await start();
    const before = await mail();
    const pids = await childPids(started.child.pid ?? 0, 'main.ts');
    expect(pids).toHaveLength(3);
    await started.end('SIGKILL');
    await start();
    // Mail that was queued before the kill is delivered.
    expect(await mail()).toBeGreaterThanOrEqual(before);
    await until(
      async () => (await Promise.all(pids.map(isGone))).every(Boolean),
      () => 'children are left',
      longestStart,
    );
  });

  it('listens on 127.0.0.1 only, with all its processes', async () => {
    const started = await start();
    const addresses = await listeningAddresses(await descendants(started.child.pid ?? 0));
    // The gateway, the mailbox, the identity provider, Postgres, and two ports of each of the three services.
    expect(addresses.length).toBeGreaterThanOrEqual(10);
    expect(addresses).toContain(`127.0.0.1:${port}`);
    expect(addresses.filter((address) => !address.startsWith('127.0.0.1:'))).toEqual([]);
  });

  it('forgets everything with --fresh', async () => {
    const file = join(directory, 'data/prometheus-targets.json');
    await mkdir(join(directory, 'data'), { recursive: true });
    await writeFile(file, 'from a run that was killed');
    // Formgate's secrets show that the folder is its own. The other tests usually have written them.
    await appendFile(join(directory, 'data/secrets.json'), '');
    const starting = start(['--fresh']);
    // `--fresh` deletes the file. The start writes the file again only after it has chosen the services' addresses.
    const isSettled = () => !existsSync(file) || running?.output().includes('Formgate is ready') === true;
    await until(isSettled, () => 'npm start has not begun', longestStart);
    expect(existsSync(file)).toBe(false);
    await starting;
    expect(await mail()).toBe(0);
    expect((await demo()).code).toBe(0);
  });
});

it('a port that is in use is reported in one clear line', async () => {
  const taken = await listen(() => undefined);
  onTestFinished(taken.close);
  const started = run('main.ts', [], { PORT: String(taken.port) });
  await new Promise((done) => started.child.on('close', done));
  expect(started.child.exitCode).toBe(1);
  expect(started.output().trim().split('\n').at(-1)).toMatch(
    /^Port \d+ is in use\. Stop what uses it, or choose another: PORT=\d+ npm start$/,
  );
});

it('the demo without a running npm start reports that in one clear line, and exits with 1', async () => {
  const { code, output } = await demo();
  expect(code).toBe(1);
  expect(output).toBe(`No response from http://localhost:${port}. Start Formgate first: npm start\n`);
});

/** Returns the process ids of the children whose command line contains `words`. */
async function childPids(parent: number, words: string): Promise<number[]> {
  const listing = spawn('ps', ['-A', '-o', 'pid=,ppid=,args='], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  listing.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((done) => listing.on('close', done));
  return text.split('\n').flatMap((line) => {
    const [, pid, ppid, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(ppid) === parent && args.includes(words) ? [Number(pid)] : [];
  });
}

/** Returns the process and all processes below it. */
async function descendants(pid: number): Promise<number[]> {
  const children = await childPids(pid, '');
  return [pid, ...(await Promise.all(children.map(descendants))).flat()];
}

/**
 * Returns the TCP addresses at which the processes listen, as `<address>:<port>`. An address of IPv6 stays in the form
 * of /proc (proc_pid_net(5)).
 */
async function listeningAddresses(pids: number[]): Promise<string[]> {
  const linksOf = async (pid: number) => {
    const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
    return Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  };
  const open = new Set((await Promise.all(pids.map(linksOf))).flat());
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables.flatMap((table) =>
    table.split('\n').flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      const [address = '', hexPort = ''] = local.split(':');
      if (state !== '0A' || !open.has(`socket:[${inode}]`)) return [];
      const bytes = Buffer.from(address, 'hex').reverse();
      return [`${bytes.length === 4 ? bytes.join('.') : address}:${Number.parseInt(hexPort, 16)}`];
    }),
  );
}

/** True if the process has ended, even if it is still a zombie. */
async function isGone(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return status === undefined || / Z /.test(status);
}
