// Starts all of Formgate on one machine, in the order of dependencies, and stops it in the reverse order. Formgate's
// processes are configured by environment variables only, as in a cluster.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../src/service/clock.ts';
import { createUrns } from '../src/service/urn.ts';
import { buildPages } from '../web/build.ts';
import { openAccess, type RunningAccess } from './access/open-access.ts';
import { openDataFolder } from './data-folder.ts';
import { registerConsole } from './demo-data/console.ts';
import { createCountriesRegister } from './demo-data/countries.ts';
import { platformSeed, waitForNotices, writeDemoData } from './demo-data/demo-data.ts';
import { createGateway, type Gateway, type Targets } from './gateway.ts';
import { openGatewayPort } from './gateway-port.ts';
import { type Mailbox, openMailbox } from './mailbox/mailbox.ts';
import { writeScrapeTargets } from './monitoring/scrape-targets.ts';
import type { StartOptions } from './options.ts';
import { findFreePort } from './ports.ts';
import type { EmbeddedPostgres } from './postgres/ownership.ts';
import { startPostgres } from './postgres/postgres.ts';
import { type SupervisedChild, superviseChild } from './processes/child-process.ts';
import { environmentFile, processEnvironments, serviceSecretName } from './processes/environments.ts';
import type { Secrets } from './secrets.ts';
import { createStopStack, StoppedError, type StopStack } from './stop-stack.ts';

export interface Formgate {
  /** Starts everything. If a component does not start, stops the others and rejects. */
  start(): Promise<Started>;
  /** Stops everything. May be called at any time, even during the start. */
  stop(): Promise<void>;
  /** Resolves with the reason when Formgate cannot continue. */
  failed: Promise<string>;
}

export interface Started {
  publicUrl: string;
  /** Addresses of the form service and its database, for benchmarks that bypass the gateway. */
  forms: { url: string; metricsUrl: string; databaseUrl: string };
}

/** Receives the progress of the start. */
export interface Report {
  done(component: string): void;
  warn(text: string): void;
}

export function createFormgate(options: StartOptions, report: Report): Formgate {
  const stack = createStopStack();
  const failure = Promise.withResolvers<string>();
  return {
    start: async () => {
      try {
        return await startAll({ options, report, stack, fail: failure.resolve });
      } catch (error) {
        // A stop during the start makes later steps fail; those failures are not reported.
        const reason = stack.isStopping ? new StoppedError('Stopped.') : error;
        await stack.stop().catch(() => undefined);
        throw reason;
      }
    },
    stop: stack.stop,
    failed: failure.promise,
  };
}

interface Run {
  options: StartOptions;
  report: Report;
  stack: StopStack;
  fail(reason: string): void;
}

async function startAll(run: Run): Promise<Started> {
  const { options, report, stack } = run;
  let handle: Gateway | undefined;
  const gateway = await openGatewayPort(options.port, (req, res) =>
    handle ? handle.app(req, res) : res.writeHead(503).end(),
  );
  gateway.server.on('upgrade', (req, socket, head) => (handle ? handle.upgrade(req, socket, head) : socket.destroy()));
  await stack.add(gateway.close);
  const publicUrl = `http://localhost:${gateway.port}`;

  const pages = inBackground(buildPages());
  const secrets = await openDataFolder(options);
  const postgres = await startDatabase(run, secrets);
  const mailbox = await openMailbox({ directory: join(options.directory, 'mailbox'), clock: systemClock });
  await stack.add(mailbox.close);
  const urns = createUrns(options.urnPrefix);
  const access = await openAccess({
    databaseUrl: await postgres.ensureDatabase('access'),
    publicUrl: `${publicUrl}/auth`,
    cookieKey: await secrets.get('access-cookies'),
    urns,
    serviceSecret: (clientId) => secrets.get(serviceSecretName(clientId)),
  });
  await stack.add(access.close);
  report.done('Identity provider and mailbox');

  const children = await startChildren({ ...run, pages, secrets, postgres, mailbox, access, urns, publicUrl });
  let hasData = false;
  handle = createGateway({
    publicUrl,
    access: access.app,
    messages: mailbox.messages,
    targets: children.targets,
    parts: async () => ({
      postgres: await access.isReady(),
      'platform server': await children.platformServer.isReady(),
      'form service': await children.forms.isReady(),
      'token handler': await children.tokenHandler.isReady(),
      'demo data': hasData,
    }),
  });
  await children.platformServer.ready;
  report.done('Platform server');
  const token = await access.token('demo', 'demo-admin');
  const { platformServer: platformUrl, forms: formsUrl } = children.targets;
  await writeDemoData({ url: platformUrl, token, urns, publicUrl });
  await children.forms.ready;
  await createCountriesRegister({ formsUrl, platformUrl, token });
  await waitForNotices({ url: platformUrl, token });
  report.done('Form service');
  await children.tokenHandler.ready;
  await registerConsole({ url: children.targets.tokenHandler, token, publicUrl });
  report.done('Token handler');
  hasData = true;
  return { publicUrl, forms: { url: children.targets.forms, ...children.formsAddresses } };
}

/** Marks a rejection of `work` as handled, because the returned promise is awaited only later. */
function inBackground<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

async function startDatabase({ options, report, stack, fail }: Run, secrets: Secrets): Promise<EmbeddedPostgres> {
  const directory = join(options.directory, 'postgres');
  const postgres = await startPostgres({ directory, password: await secrets.get('postgres') });
  await stack.add(postgres.stop);
  void postgres.failed.then(() => fail('Postgres has stopped unexpectedly.'));
  report.done('Postgres');
  return postgres;
}

interface ChildrenRun extends Run {
  pages: Promise<void>;
  secrets: Secrets;
  postgres: EmbeddedPostgres;
  mailbox: Mailbox;
  access: RunningAccess;
  urns: ReturnType<typeof createUrns>;
  publicUrl: string;
}

interface Children {
  formsAddresses: { metricsUrl: string; databaseUrl: string };
  targets: Targets;
  platformServer: SupervisedChild;
  forms: SupervisedChild;
  tokenHandler: SupervisedChild;
}

async function startChildren(run: ChildrenRun): Promise<Children> {
  const { options, postgres } = run;
  await run.pages;
  const addressOf = async (database: string) => ({
    databaseUrl: await postgres.ensureDatabase(database),
    port: await findFreePort(),
    metricsPort: await findFreePort(),
  });
  const addresses = {
    platformServer: await addressOf('platform'),
    forms: await addressOf('forms'),
    tokenHandler: await addressOf('token_handler'),
  };
  const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`;
  const targets = {
    platformServer: urlOf(addresses.platformServer),
    forms: urlOf(addresses.forms),
    tokenHandler: urlOf(addresses.tokenHandler),
  };
  const seedFile = join(options.directory, 'seed.json');
  await writeFile(seedFile, JSON.stringify(platformSeed(targets), undefined, 2));
  const environments = await processEnvironments({
    ...addresses,
    urns: run.urns,
    secrets: run.secrets,
    accessUrl: run.access.url,
    publicUrl: run.publicUrl,
    smtpPort: run.mailbox.port,
    seedFile,
    redisUrl: options.redisUrl,
  });
  await writeReconcilerEnvironment(run, environments.reconciler);
  await run.stack.add(await writeScrapeTargets(options.directory, addresses));
  const { databaseUrl, metricsPort } = addresses.forms;
  return {
    targets,
    formsAddresses: { databaseUrl, metricsUrl: `http://127.0.0.1:${metricsPort}` },
    platformServer: await supervise(run, 'platform server', 'platform-server', environments.platformServer),
    forms: await supervise(run, 'form service', 'forms', environments.forms),
    tokenHandler: await supervise(run, 'token handler', 'token-handler', environments.tokenHandler),
  };
}

/** Writes the environment of `npm run reconcile` to a file that only its owner may read, until Formgate stops. */
async function writeReconcilerEnvironment({ options, stack }: Run, environment: Record<string, string>): Promise<void> {
  const file = join(options.directory, 'reconciler.env');
  await rm(file, { force: true });
  await writeFile(file, environmentFile(environment), { mode: 0o600 });
  await stack.add(() => rm(file, { force: true }));
}

type Module = 'platform-server' | 'forms' | 'token-handler';

async function supervise({ options, report, stack }: Run, name: string, module: Module, env: Record<string, string>) {
  const logFile = join(options.directory, 'logs', `${module}.log`);
  await rm(logFile, { force: true });
  const child = superviseChild({
    name,
    env,
    logFile,
    main: join(import.meta.dirname, '../src', module, 'main.ts'),
    readyUrl: `http://127.0.0.1:${env.METRICS_PORT}/readyz`,
    onDeath: (reason, waitMs) =>
      report.warn(`The ${name} exited (${reason}). It restarts in ${waitMs / 1000} s. Its log is ${logFile}`),
  });
  // The start awaits `ready` later. Until then, a rejection of `ready` must not end the process.
  child.ready.catch(() => undefined);
  await stack.add(child.stop);
  return child;
}
