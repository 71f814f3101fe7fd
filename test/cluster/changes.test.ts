// Tests changes of a running release: rollouts, drains, upgrades, faulty upgrades, rollbacks and uninstallation.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadUntil } from './load.ts';
import { signInDemo } from './sign-in.ts';
import { provideStorage, type Storage } from './storage.ts';
import { createWorld, fullname, release, type World, waitForStatus, writeWorldData } from './world.ts';

let world: World;
let storage: Storage;
let formId: string;
beforeAll(async () => {
  world = await createWorld('formgate-changes');
  storage = await provideStorage('formgate-changes');
  await install();
  await writeWorldData(world);
  formId = await createForm();
}, 900_000);
afterAll(async () => {
  await world?.remove();
  await storage?.remove();
}, 300_000);

/** Installs the release with volumes for the bundled stores. */
const install = (values: object = {}, ...flags: string[]) => {
  const stores = { postgres: { storage: storage.values }, redis: { storage: storage.values } };
  return world.install({ bundled: stores, ...values }, ...flags);
};

async function createForm(): Promise<string> {
  const headers = { Authorization: `Bearer ${await world.token('demo-intake')}`, 'Content-Type': 'application/json' };
  const applicant = { addressAs: 'Kim', channels: [{ channel: 'email', address: 'kim@example.org' }] };
  const body = JSON.stringify({ definitionId: 'business-licence', applicant });
  const created = await fetch(`${world.url}/form/v1/forms`, { method: 'POST', headers, body });
  expect(created.status).toBe(201);
  return ((await created.json()) as { id: string }).id;
}

async function formStatus(): Promise<number> {
  const headers = { Authorization: `Bearer ${await world.token('demo-admin')}` };
  return (await fetch(`${world.url}/form/v1/forms/${formId}`, { headers })).status;
}

/** Selects the pods of both services. */
const serving = `app.kubernetes.io/instance=${release},app.kubernetes.io/component in (forms, token-handler)`;

/**
 * Returns the version of every object of the release, keyed by kind and name, and the names of the release's pods.
 * Leaves out objects that also change without an upgrade.
 */
async function generations(): Promise<Record<string, string>> {
  const kinds =
    'deployments,statefulsets,cronjobs,services,secrets,configmaps,ingresses,networkpolicies,serviceaccounts,roles';
  const said = await world.kubectl(
    ...['get', kinds, '-l', `app.kubernetes.io/instance=${release}`],
    ...['-o', 'jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion}{"\\n"}{end}'],
  );
  // Leave out Deployments, StatefulSets and CronJobs, because their versions also change with their status. The names
  // of the pods show whether a Deployment or StatefulSet was changed.
  const lines = said
    .trim()
    .split('\n')
    .filter((line) => !/^(Deployment|StatefulSet|CronJob)/.test(line));
  const pods = await world.kubectl('get', 'pods', '-l', `app.kubernetes.io/instance=${release}`, '-o', 'name');
  return Object.fromEntries(
    [...lines, ...pods.trim().split('\n')].sort().map((line) => line.split('=') as [string, string]),
  );
}

/** Makes a change while wrk sends requests to both services, and returns the results of this load. */
async function underLoad(change: () => Promise<unknown>) {
  const address = process.env.INGRESS_URL || 'http://127.0.0.1:8000';
  const { host } = new URL(world.url);
  const { cookie } = await signInDemo(world.url);
  const headers = { Authorization: `Bearer ${await world.token('demo-admin')}` };
  let isOver = false;
  const changing = delay(2_000)
    .then(change)
    .finally(() => {
      isOver = true;
    });
  const [forms, sessions] = await Promise.all([
    loadUntil(() => isOver, { url: `${address}/form/v1/forms/${formId}`, host, headers }),
    loadUntil(() => isOver, { url: `${address}/token-handler/sessions`, host, headers: { Cookie: cookie } }),
    changing,
  ]);
  return { forms, sessions };
}

describe('a rollout', () => {
  it('loses no request to either service', async () => {
    const parts = ['forms', 'token-handler'].map((part) => `deployment/${fullname}-${part}`);
    const result = await underLoad(async () => {
      await world.kubectl('rollout', 'restart', ...parts);
      for (const part of parts) await world.kubectl('rollout', 'status', part, '--timeout=200s');
      // Wait, because the last old pod may still be terminating.
      await delay(15_000);
    });
    expect(result.forms).toMatchObject({ refused: 0, broken: 0 });
    expect(result.sessions).toMatchObject({ refused: 0, broken: 0 });
    expect(result.forms.requests).toBeGreaterThan(200);
    expect(result.sessions.requests).toBeGreaterThan(200);
  }, 300_000);

  it('a drain of the node removes no more pods than the PodDisruptionBudget allows', async () => {
    const part = 'app.kubernetes.io/component=forms';
    const nodes = (await world.kubectl('get', 'pods', '-l', part, '-o', 'jsonpath={.items[*].spec.nodeName}')).split(
      ' ',
    );
    const [node = ''] = nodes;
    try {
      const drained = await world.tryKubectl(
        'drain',
        node,
        `--pod-selector=${part}`,
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--timeout=10s',
      );
      if (nodes.every((other) => other === node)) {
        // No other node can run a replacement, so the disruption budget keeps the second pod.
        expect(drained.code).not.toBe(0);
        expect(drained.stderr).toContain("violate the pod's disruption budget");
      }
      expect(await formStatus()).toBe(200);
    } finally {
      await world.kubectl('uncordon', node);
    }
    await world.kubectl('rollout', 'status', `deployment/${fullname}-forms`, '--timeout=120s');
  });
});

describe('a bundled store', () => {
  it.each(['postgres', 'redis'])(
    'keeps its data when its pod is replaced: %s',
    async (part) => {
      const { cookie } = await signInDemo(world.url);
      await world.kubectl('delete', 'pod', `${fullname}-${part}-0`, '--timeout=120s');
      await world.kubectl('rollout', 'status', `statefulset/${fullname}-${part}`, '--timeout=120s');
      const session = async () =>
        (await fetch(`${world.url}/token-handler/sessions`, { headers: { Cookie: cookie } })).status;
      await expect.poll(formStatus, { timeout: 60_000, interval: 500 }).toBe(200);
      await expect.poll(session, { timeout: 60_000, interval: 500 }).toBe(200);
    },
    300_000,
  );
});

describe('an upgrade', () => {
  it('with the same values changes nothing, however often it is repeated', async () => {
    await install();
    const before = await generations();
    await install();
    expect(await generations()).toEqual(before);
    expect(await formStatus()).toBe(200);
  });

  it.each([
    [
      'a secret that is too short',
      { forms: { codeKey: { existingSecret: { name: 'mistakes', key: 'short' } } } },
      /CODE_KEY: must have at least 32 characters/,
    ],
    [
      'a database that cannot be reached',
      { forms: { database: { value: 'postgres://forms:x@nowhere.invalid:5432/forms' } } },
      /the database cannot be opened: the name of its host (is not known|cannot be looked up)/,
    ],
    [
      'a wrong password of the database',
      { forms: { database: { value: `postgres://forms:wrong@${fullname}-postgres:5432/forms` } } },
      /the database cannot be opened: it refuses the user or the password/,
    ],
  ])(
    'with %s: the status of the new pod states the reason, and the old pods keep serving',
    async (_name, values, why) => {
      await world.apply([
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'mistakes' }, stringData: { short: 'too short' } },
      ]);
      try {
        await install(values, '--wait=false');
        await untilSaid('forms', why);
        expect(await formStatus()).toBe(200);
      } finally {
        await world.helm('rollback', release, '--wait', '--timeout', '3m');
      }
      expect(await formStatus()).toBe(200);
    },
  );

  /**
   * Returns the names of the ready pods or, if `ready` is false, of the other pods. Leaves out terminating pods,
   * because they may belong to earlier tests.
   */
  async function podsBy(ready: boolean, selector: string): Promise<string[]> {
    const columns = 'NAME:.metadata.name,READY:.status.containerStatuses[0].ready,ENDS:.metadata.deletionTimestamp';
    const rows = await world.kubectl(
      ...['get', 'pods', '-l', selector, '--no-headers', '-o', `custom-columns=${columns}`],
    );
    const found = [...rows.matchAll(/^(\S+)\s+(true|false)\s+<none>\s*$/gm)];
    return found.flatMap(([, name = '', isReady]) => (isReady === String(ready) ? [name] : [])).sort();
  }

  const readyPods = () => podsBy(true, serving);
  const unreadyPods = (part: string) =>
    podsBy(false, `app.kubernetes.io/instance=${release},app.kubernetes.io/component=${part}`);

  it('with a wrong CLIENT_SECRET fails, the new pods log the reason, and the old ones keep serving', async () => {
    const account = { secret: { value: 'a wrong secret' } };
    const before = await readyPods();
    expect(before.length).toBeGreaterThanOrEqual(2);
    try {
      await expect(install({ forms: { account }, tokenHandler: { account } }, '--timeout', '25s')).rejects.toThrow();
      for (const part of ['forms', 'token-handler']) {
        const selector = `app.kubernetes.io/component=${part}`;
        const logs = () => world.kubectl('logs', '-l', selector, '--tail=-1', '--max-log-requests=10');
        const reason = "rejected this service's credentials; check CLIENT_ID and CLIENT_SECRET";
        // A pod waits for an unreachable identity provider before it fails; the timeout is longer than this wait.
        await expect.poll(logs, { timeout: 100_000, interval: 1_000 }).toContain(reason);
      }
      expect(await readyPods()).toEqual(expect.arrayContaining(before));
      expect(await formStatus()).toBe(200);
    } finally {
      await world.helm('rollback', release, '--wait', '--timeout', '3m');
    }
    expect(await formStatus()).toBe(200);
  }, 420_000);

  it('with a migration that fails: the pod states the reason, the database is unchanged, and the old pods keep serving', async () => {
    const sql = (text: string) =>
      world.kubectl(
        ...['exec', `${fullname}-postgres-0`, '--', 'sh', '-c'],
        `PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); psql -h /var/run/postgresql -U postgres -d forms -X -At -c "${text}"`,
      );
    const latest = (await sql('SELECT max(version) FROM schema_migrations')).trim();
    const [md5, name, at] = (await sql(`SELECT md5, name, run_at FROM schema_migrations WHERE version = ${latest}`))
      .trim()
      .split('|');
    const schema = () =>
      sql(
        "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
      );
    const before = await schema();
    try {
      // Make the latest migration look as if it has not run, in a database that rejects all schema changes.
      await sql(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'",
      );
      await sql('CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse()');
      await sql(`DELETE FROM schema_migrations WHERE version = ${latest}`);
      await world.kubectl('rollout', 'restart', `deployment/${fullname}-forms`);
      // The statement fails because of the trigger, or because the object that it creates already exists.
      await untilSaid('forms', /the database cannot be migrated: it rejected a statement \([0-9A-Z]{5}\)/);
      expect(await schema()).toBe(before);
      expect((await sql(`SELECT count(*) FROM schema_migrations WHERE version = ${latest}`)).trim()).toBe('0');
      expect(await formStatus()).toBe(200);
    } finally {
      await sql(
        `INSERT INTO schema_migrations (version, name, md5, run_at) VALUES (${latest}, '${name}', '${md5}', '${at}')`,
      );
      await sql('DROP EVENT TRIGGER IF EXISTS refuse');
    }
    // Delete the failed pod. Otherwise, Kubernetes would restart it only after a backoff of up to minutes.
    const failed = await unreadyPods('forms');
    if (failed.length > 0) await world.kubectl('delete', 'pod', '--wait=false', ...failed);
    await world.kubectl('rollout', 'status', `deployment/${fullname}-forms`, '--timeout=400s');
  }, 600_000);

  it('and a rollback keep the data in the databases', async () => {
    await install({ logLevel: 'warn' });
    expect(await formStatus()).toBe(200);
    await world.helm('rollback', release, '--wait', '--timeout', '5m');
    await waitForStatus(`${world.url}/form/v1/forms`, 401);
    expect(await formStatus()).toBe(200);
  });

  /** Waits until a container of the component has ended and left a matching message in its pod's status. */
  async function untilSaid(part: string, why: RegExp): Promise<void> {
    const states = ['lastState', 'state'].map((state) => `{.status.containerStatuses[*].${state}.terminated.message}`);
    const path = `jsonpath={range .items[*]}${states.join('')}{"\\n"}{end}`;
    const pods = ['get', 'pods', '-l', `app.kubernetes.io/component=${part}`, '-o', path];
    let said = '';
    for (const deadline = Date.now() + 150_000; Date.now() < deadline; await delay(1_000)) {
      said = await world.kubectl(...pods);
      if (why.test(said)) return;
    }
    throw new Error(`No pod of ${part} stated ${why}, but: ${said}`);
  }
});

describe('an uninstallation', () => {
  it('removes everything except for the secrets that are needed to decrypt the data', async () => {
    await world.helm('uninstall', release, '--wait', '--timeout', '3m');
    const left = await world.kubectl(
      'get',
      'all,secrets,configmaps,ingresses,networkpolicies',
      '-l',
      `app.kubernetes.io/instance=${release}`,
      '-o',
      'name',
    );
    expect(
      left
        .trim()
        .split('\n')
        .filter((name) => !name.startsWith('pod/'))
        .sort(),
    ).toEqual([`secret/${fullname}-keys`, `secret/${fullname}-postgres`, `secret/${fullname}-redis`]);
  });
});
