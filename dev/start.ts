// Starts all of Formgate on one machine, in an order in which each part finds what it needs, and stops it the other way
// round. The product's own processes get environment variables and nothing else, as in a cluster.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../src/service/clock.ts';
import { createUrns } from '../src/service/urn.ts';
import { openAccess, type RunningAccess } from './access/open-access.ts';
import { createCountriesRegister } from './demo-data/countries.ts';
import { platformSeed, waitForNotices, writeDemoData } from './demo-data/demo-data.ts';
import { createGateway, type Gateway, type Targets } from './gateway.ts';
import { findFreePort, type Listening, listen } from './listen.ts';
import { type Mailbox, openMailbox } from './mailbox/mailbox.ts';
import { type StartOptions, UsageError } from './options.ts';
import type { EmbeddedPostgres } from './postgres/ownership.ts';
import { removePostgres, startPostgres } from './postgres/postgres.ts';
import { type SupervisedChild, superviseChild } from './processes/child-process.ts';
import { environmentFile, processEnvironments, serviceSecretName } from './processes/environments.ts';
import { openSecrets, type Secrets } from './secrets.ts';
import { createStopStack, StoppedError, type StopStack } from './stop-stack.ts';

export interface Formgate {
  /** Starts everything; rejects, with everything stopped again, when something does not start. */
  start(): Promise<Started>;
  /** May be called at any time, while starting too. */
  stop(): Promise<void>;
  /** Resolves with a reason when it cannot go on by itself. */
  failed: Promise<string>;
}

export interface Started {
  publicUrl: string;
  /** Where the form service and its database are, for a bench that goes past the gateway. */
  forms: { url: string; metricsUrl: string; databaseUrl: string };
}

/** Told to whoever watches the start. */
export interface Report {
  done(part: string): void;
  warn(text: string): void;
}

export function createFormgate(options: StartOptions, report: Report): Formgate {
  const stack = createStopStack();
  const failure = Promise.withResolvers<string>();
  return {
    start: async () => {
      try {
        return await startParts({ options, report, stack, fail: failure.resolve });
      } catch (error) {
        // What a stop takes away from under a start is no failure of its own.
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

async function startParts(run: Run): Promise<Started> {
  const { options, report, stack } = run;
  // The port first: if it is taken, nothing else was touched.
  let handle: Gateway | undefined;
  const gateway = await listenAt(options.port, (req, res) =>
    handle ? handle.app(req, res) : res.writeHead(503).end(),
  );
  gateway.server.on('upgrade', (req, socket, head) => (handle ? handle.upgrade(req, socket, head) : socket.destroy()));
  await stack.add(gateway.close);
  const publicUrl = `http://localhost:${gateway.port}`;

  const secrets = await openFolder(options);
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
  report.done('Access service and mailbox');

  const children = await startChildren({ ...run, secrets, postgres, mailbox, access, urns, publicUrl });
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
  report.done('Token handler');
  hasData = true;
  return { publicUrl, forms: { url: children.targets.forms, ...children.formsPlace } };
}

async function listenAt(port: number, handle: Parameters<typeof listen>[0]): Promise<Listening> {
  return listen(handle, port).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') {
      throw new UsageError(`Port ${port} is in use. Stop what uses it, or choose another: PORT=${port + 1} npm start`);
    }
    if (error.code === 'EACCES')
      throw new UsageError(`Port ${port} may not be opened by this user: choose one above 1023.`);
    throw error;
  });
}

/** The folder of the data, emptied first if a fresh start is asked for. Only what we put there ourselves is removed. */
async function openFolder({ directory, fresh }: StartOptions): Promise<Secrets> {
  await mkdir(directory, { recursive: true });
  const secretsFile = join(directory, 'secrets.json');
  if (fresh) {
    const password = await openSecrets(secretsFile).then(
      (secrets) => secrets.get('postgres'),
      () => 'lost',
    );
    await removePostgres({ directory: join(directory, 'postgres'), password });
    for (const name of ['mailbox', 'logs', 'seed.json', 'reconciler.env', 'secrets.json']) {
      await rm(join(directory, name), { recursive: true, force: true });
    }
  }
  await mkdir(join(directory, 'logs'), { recursive: true });
  return openSecrets(secretsFile);
}

async function startDatabase({ options, report, stack, fail }: Run, secrets: Secrets): Promise<EmbeddedPostgres> {
  const directory = join(options.directory, 'postgres');
  const postgres = await startPostgres({ directory, password: await secrets.get('postgres') });
  await stack.add(postgres.stop);
  void postgres.failed.then(() => fail('Postgres has stopped by itself.'));
  report.done('Postgres');
  return postgres;
}

interface Parts extends Run {
  secrets: Secrets;
  postgres: EmbeddedPostgres;
  mailbox: Mailbox;
  access: RunningAccess;
  urns: ReturnType<typeof createUrns>;
  publicUrl: string;
}

interface Children {
  formsPlace: { metricsUrl: string; databaseUrl: string };
  targets: Targets;
  platformServer: SupervisedChild;
  forms: SupervisedChild;
  tokenHandler: SupervisedChild;
}

async function startChildren(parts: Parts): Promise<Children> {
  const { options, postgres } = parts;
  const place = async (database: string) => ({
    databaseUrl: await postgres.ensureDatabase(database),
    port: await findFreePort(),
    metricsPort: await findFreePort(),
  });
  const places = {
    platformServer: await place('platform'),
    forms: await place('forms'),
    tokenHandler: await place('token_handler'),
  };
  const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`;
  const targets = {
    platformServer: urlOf(places.platformServer),
    forms: urlOf(places.forms),
    tokenHandler: urlOf(places.tokenHandler),
  };
  const seedFile = join(options.directory, 'seed.json');
  await writeFile(seedFile, JSON.stringify(platformSeed(targets), undefined, 2));
  const environments = await processEnvironments({
    ...places,
    urns: parts.urns,
    secrets: parts.secrets,
    accessUrl: parts.access.url,
    publicUrl: parts.publicUrl,
    smtpPort: parts.mailbox.port,
    seedFile,
  });
  await offerReconciler(parts, environments.reconciler);
  const { databaseUrl, metricsPort } = places.forms;
  return {
    targets,
    formsPlace: { databaseUrl, metricsUrl: `http://127.0.0.1:${metricsPort}` },
    platformServer: await supervise(parts, 'platform server', 'platform-server', environments.platformServer),
    forms: await supervise(parts, 'form service', 'forms', environments.forms),
    tokenHandler: await supervise(parts, 'token handler', 'token-handler', environments.tokenHandler),
  };
}

/** What `npm run reconcile` reads while we run; with secrets, so only its owner may. */
async function offerReconciler({ options, stack }: Parts, environment: Record<string, string>): Promise<void> {
  const file = join(options.directory, 'reconciler.env');
  await rm(file, { force: true });
  await writeFile(file, environmentFile(environment), { mode: 0o600 });
  await stack.add(() => rm(file, { force: true }));
}

type Room = 'platform-server' | 'forms' | 'token-handler';

async function supervise({ options, report, stack }: Run, name: string, room: Room, env: Record<string, string>) {
  const logFile = join(options.directory, 'logs', `${room}.log`);
  await rm(logFile, { force: true });
  const child = superviseChild({
    name,
    env,
    logFile,
    main: join(import.meta.dirname, '../src', room, 'main.ts'),
    readyUrl: `http://127.0.0.1:${env.METRICS_PORT}/readyz`,
    onDeath: (reason, waitMs) =>
      report.warn(`The ${name} died (${reason}); it starts again in ${waitMs / 1000} s. ${logFile}`),
  });
  // The rejection is heard where the start waits for it; until then it must not end the process.
  child.ready.catch(() => undefined);
  await stack.add(child.stop);
  return child;
}
