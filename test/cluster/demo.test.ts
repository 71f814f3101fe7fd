// Tests the whole product in a cluster: installed by the chart, reached through the ingress by its host name, and
// protected by NetworkPolicies and roles.
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runConsoleDemo } from '../../dev/demo/console-steps.ts';
import { createConversation } from '../../dev/demo/conversation.ts';
import { runDemo } from '../../dev/demo/steps.ts';
import { checkOutput } from '../support/output-check.ts';
import { clientAt, openPassage, type Passage } from './ingress.ts';
import { runProbe } from './probe.ts';
import {
  createWorld,
  fullname,
  newestHelm,
  readPodLogs,
  release,
  type World,
  waitForStatus,
  writeWorldData,
} from './world.ts';

const signInLimit = 25;
let world: World;
let passage: Passage;
let values: object;
beforeAll(async () => {
  world = await createWorld('formgate-demo', await newestHelm());
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  passage = await openPassage(await world.kubectl('get', 'nodes', '-o', `jsonpath=${path}`));
  values = {
    reconciler: { schedule: '* * * * *' },
    tokenHandler: { env: { SIGN_IN_LIMIT: String(signInLimit) } },
    networkPolicy: { egress: { ingress: { ports: [Number(new URL(passage.url).port || 80)] } } },
    tests: {
      url: passage.url,
      host: world.host,
      signIn: {
        tenant: 'demo',
        clientId: 'demo-console',
        callbackUrl: `${world.url}/token-handler/clients/demo-console/callback`,
        person: { existingSecret: { name: 'tester' } },
        target: 'form-service',
        path: '/form/v1/forms?mine=true',
      },
      register: {
        tenantId: 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6',
        name: 'countries',
      },
    },
  };
  await world.install(values);
  await writeWorldData(world);
  const person = { username: 'alice@example.com', password: 'alice' };
  await world.apply([{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tester' }, stringData: person }]);
}, 900_000);
afterAll(async () => {
  await passage?.close();
  await world?.remove();
}, 300_000);

async function demo(): Promise<string> {
  const said: string[] = [];
  const print = (line: string) => void said.push(line);
  const talk = createConversation(world.url, print);
  await runDemo(talk, print);
  await runConsoleDemo(talk, world.url);
  return said.join('\n');
}

describe('a trial installation', () => {
  it('passes the demo through the ingress', async () => {
    expect(await demo()).toContain('The session has ended');
  });

  it('passes helm test through the ingress: its dependencies, a register without a token, and a person who signs in and calls a target', async () => {
    const said = await world.helm('test', release, '--logs');
    expect(said).toContain('Phase:          Succeeded');
    expect(said).toContain('passed  alice@example.com signs in with demo-console and calls the target form-service');
    expect(said).not.toContain('failed');
  });

  it.each([
    ['/apply/demo/business-licence', 'text/html'],
    ['/apply/api/tenants/demo/definitions/business-licence', 'application/json'],
    ['/console/demo', 'text/html'],
  ])('serves the pages for people: %s', async (path, type) => {
    const response = await fetch(`${world.url}${path}`, { headers: { 'Sec-Fetch-Site': 'same-origin' } });
    expect({ status: response.status, type: response.headers.get('content-type') }).toMatchObject({
      status: 200,
      type: expect.stringContaining(type),
    });
  });

  it('has only pods that satisfy the Pod Security level restricted', async () => {
    // The namespace enforces the Pod Security level. A rejected pod would cause an event.
    const events = await world.kubectl('get', 'events', '-o', 'jsonpath={.items[*].message}');
    expect(events).not.toContain('violates PodSecurity');
    const users = await world.kubectl(
      ...['get', 'pods', '-l', `app.kubernetes.io/instance=${release}`],
      ...['-o', 'jsonpath={range .items[*]}{.spec.containers[*].securityContext.readOnlyRootFilesystem}{" "}{end}'],
    );
    expect(
      users
        .trim()
        .split(/\s+/)
        .every((value) => value === 'true'),
    ).toBe(true);
  });
});

describe('rights at the API server', () => {
  it.each(['forms', 'token-handler', 'platform-server', 'postgres', 'redis', 'test'])(
    'the account of %s has no rights beyond those of every account',
    async (part) => {
      expect(await rightsOf(`${fullname}-${part}`)).toEqual([]);
    },
  );

  it('the account of the reconciler may list CoreClients, write their status, and create Events', async () => {
    expect(await rightsOf(`${fullname}-reconciler`)).toEqual([
      'coreclients.formgate.dev [list]',
      'coreclients.formgate.dev/status [patch]',
      'events.events.k8s.io [create]',
    ]);
  });
});

/** Returns the rights of a service account in the namespace, without those that every service account has. */
async function rightsOf(account: string): Promise<string[]> {
  const list = async (name: string) => {
    const user = `system:serviceaccount:${world.namespace}:${name}`;
    const said = await world.kubectl('auth', 'can-i', '--list', '--no-headers', `--as=${user}`);
    return said.split('\n').map((line) => line.replace(/\s+\[\]\s+\[\]\s+/, ' ').trim());
  };
  const ofEveryAccount = new Set(await list('default'));
  return (await list(account)).filter((line) => line !== '' && !ofEveryAccount.has(line)).sort();
}

describe('rate limits by client address', () => {
  const start = async (address: string, forged?: string): Promise<number> => {
    const query = new URLSearchParams({
      tenant: 'demo',
      callbackUrl: `${world.url}/token-handler/clients/demo-console/callback`,
    });
    const { statusCode, body } = await request(`${world.url}/token-handler/clients/demo-console/auth?${query}`, {
      dispatcher: clientAt(address),
      headers: forged === undefined ? {} : { 'X-Forwarded-For': forged },
    });
    await body.dump();
    return statusCode;
  };

  it('use the address that the ingress saw, whatever X-Forwarded-For the client sends', async () => {
    const statuses: number[] = [];
    for (let count = 0; count < signInLimit + 3; count += 1)
      statuses.push(await start('127.0.0.7', `198.51.100.${count}`));
    expect(statuses.slice(0, signInLimit).every((status) => status === 302)).toBe(true);
    expect(statuses.slice(signInLimit)).toEqual([429, 429, 429]);
    expect(await start('127.0.0.8')).toBe(302);
    // A forged X-Forwarded-For header with an address over the limit does not cause a refusal.
    expect(await start('127.0.0.8', '127.0.0.7')).toBe(302);
  });
});

describe('NetworkPolicies', () => {
  const ports: Record<string, number> = {
    forms: 8080,
    'token-handler': 8080,
    'platform-server': 8080,
    postgres: 5432,
    redis: 6379,
  };
  const connects = `
    const { connect } = require('node:net');
    const reach = ([host, port]) => new Promise((done) => {
      const socket = connect({ host: '${fullname}-' + host, port, timeout: 4000 });
      socket.on('connect', () => { socket.destroy(); done([host, true]); });
      socket.on('timeout', () => { socket.destroy(); done([host, false]); });
      socket.on('error', () => done([host, false]));
    });
    Promise.all(${JSON.stringify(Object.entries(ports))}.map(reach)).then((all) => console.log(JSON.stringify(Object.fromEntries(all))));`;

  it('a pod without the label of clients reaches neither the services nor Postgres nor Redis', async () => {
    expect(await runProbe(world, { ask: connects })).toEqual({
      forms: false,
      'token-handler': false,
      'platform-server': false,
      postgres: false,
      redis: false,
    });
  });

  it('a pod with the label of clients reaches the two services, but not their stores', async () => {
    expect(await runProbe(world, { labels: { 'formgate.dev/client': 'true' }, ask: connects })).toEqual({
      forms: true,
      'token-handler': true,
      'platform-server': expect.any(Boolean),
      postgres: false,
      redis: false,
    });
  });
});

describe('the reconciler', () => {
  const coreClient = (name: string) => ({
    apiVersion: 'formgate.dev/v1alpha1',
    kind: 'CoreClient',
    metadata: { name },
    spec: {
      description: 'A client of the cluster tests.',
      redirectUris: ['https://app.example.org/token-handler/clients/cluster-client/callback'],
      targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }],
    },
  });

  it('runs as a CronJob: a new CoreClient becomes Ready, and the token handler lists it', async () => {
    await world.apply([coreClient('cluster-client')]);
    await world.kubectl('wait', '--for=condition=Ready', 'coreclient/cluster-client', '--timeout=170s');
    const listed = await untilListed('cluster-client');
    expect(listed).toMatchObject({ core: true, registered: false });
  }, 400_000);

  it('ends each run with a log line that summarises it', async () => {
    const ended = async () => {
      const jobs = await world.kubectl(
        ...['get', 'jobs', '-l', 'app.kubernetes.io/component=reconciler'],
        ...['-o', 'jsonpath={range .items[?(@.status.succeeded==1)]}{.metadata.name}{"\\n"}{end}'],
      );
      return jobs.trim().split('\n')[0];
    };
    await expect.poll(ended, { timeout: 150_000, interval: 2_000 }).toBeTruthy();
    expect(await world.kubectl('logs', `job/${await ended()}`)).toMatch(/Succeeded in .* s: \d+ warned/);
  }, 200_000);

  async function untilListed(id: string): Promise<unknown> {
    const headers = { Authorization: `Bearer ${await world.token('demo-admin')}` };
    for (const deadline = Date.now() + 180_000; Date.now() < deadline; await delay(2_000)) {
      const response = await fetch(`${world.url}/token-handler/v1/clients`, { headers });
      const clients = response.ok ? ((await response.json()) as { id: string }[]) : [];
      const found = clients.find((client) => client.id === id);
      if (found) return found;
    }
    throw new Error(`${id} is not among the clients after three minutes.`);
  }
});

describe('a kill of all pods', () => {
  it('loses no acknowledged save, and the demo passes again', async () => {
    const headers = { Authorization: `Bearer ${await world.token('demo-intake')}`, 'Content-Type': 'application/json' };
    const applicant = { addressAs: 'Kim', channels: [{ channel: 'email', address: 'kim@example.org' }] };
    const body = JSON.stringify({ definitionId: 'business-licence', applicant });
    const created = await fetch(`${world.url}/form/v1/forms`, { method: 'POST', headers, body });
    const { id } = (await created.json()) as { id: string };
    let acknowledged = 0;
    let stop = false;
    const saving = (async () => {
      for (let number = 1; !stop; number += 1) {
        const saved = await fetch(`${world.url}/form/v1/forms/${id}/data`, {
          ...{ method: 'PUT', headers, body: JSON.stringify({ data: { number }, files: {} }) },
        }).catch(() => undefined);
        if (saved?.status === 200) acknowledged = number;
      }
    })();
    for (const part of ['forms', 'token-handler', 'platform-server', 'forms']) {
      const label = `app.kubernetes.io/component=${part}`;
      const [pod = ''] = (await world.kubectl('get', 'pods', '-l', label, '-o', 'name')).split('\n');
      await world.kubectl('delete', pod, '--grace-period=0', '--force');
      await delay(2_000);
    }
    stop = true;
    await saving;
    expect(acknowledged).toBeGreaterThan(10);
    for (const part of ['forms', 'token-handler', 'platform-server'])
      await world.kubectl('rollout', 'status', `deployment/${fullname}-${part}`, '--timeout=120s');
    const admin = { Authorization: `Bearer ${await world.token('demo-admin')}` };
    const read = await fetch(`${world.url}/form/v1/forms/${id}/data`, { headers: admin });
    const kept = (await read.json()) as { data: { number: number } };
    expect(kept.data.number).toBeGreaterThanOrEqual(acknowledged);
    // Nodes may need some seconds until they route calls to the new pod of the platform server.
    await expect.poll(() => demo().catch(String), { timeout: 10_000 }).toContain('The session has ended');
  }, 300_000);
});

describe('with an HTTPRoute instead of the Ingress', () => {
  it('the demo passes through the Gateway', async () => {
    const port = Number(new URL(world.url).port || 80);
    await world.apply([
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'Gateway',
        metadata: { name: 'tests' },
        spec: {
          gatewayClassName: process.env.GATEWAY_CLASS || 'traefik',
          listeners: [{ name: 'http', port, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }],
        },
      },
    ]);
    await world.install(
      {
        ...values,
        ingress: { enabled: false },
        httpRoute: {
          enabled: true,
          rewrite: true,
          hostnames: [world.host],
          parentRefs: [{ name: 'tests', sectionName: 'http' }],
        },
      },
      '--set-json=networkPolicy.ingressController.podLabels={"app.kubernetes.io/name":"traefik"}',
    );
    expect(await world.kubectl('get', 'ingress', '-o', 'name')).toBe('ingress.networking.k8s.io/test-parts\n');
    await waitForStatus(`${world.url}/form/v1/forms`, 401);
    await waitForStatus(`${world.url}/token-handler/sessions`, 401);
    expect(await demo()).toContain('The session has ended');
  }, 400_000);
});

it('the logs of all pods hold no token, cookie or address, and their audit events are valid', async () => {
  const logs = await readPodLogs(world);
  expect(logs).toContain('"audit":');
  expect(await checkOutput(Readable.from([logs]))).toEqual([]);
});
