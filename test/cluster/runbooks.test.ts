// Runs the commands of the runbooks unchanged: the diagnosis shows the cause of an incident, the fix ends the incident,
// and the verification confirms the fix. test/incidents tests the incidents of the other alerts, because faults are
// easier to cause there.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandsOf, preludeOf, readRunbook, runbookNames, type Section } from '../monitoring/runbook-blocks.ts';
import { attempt, type Outcome } from './commands.ts';
import { provideStorage, type Storage } from './storage.ts';
import { createWorld, fullname, release, type World, writeWorldData } from './world.ts';

const namespace = 'formgate-runbooks';
let world: World;
let storage: Storage;
beforeAll(async () => {
  world = await createWorld(namespace);
  storage = await provideStorage(namespace);
  const stores = { postgres: { storage: storage.values }, redis: { storage: storage.values } };
  await world.install({ bundled: stores });
  await writeWorldData(world);
}, 900_000);
afterAll(async () => {
  await world?.remove();
  await storage?.remove();
}, 300_000);

/** Runs the commands of a section in a new shell. */
function follow(runbook: string, section: Section): Promise<Outcome> {
  const text = readRunbook(`${runbook}.md`);
  return runCommands(preludeOf(text, { namespace, release }) + commandsOf(text, section));
}

const runCommands = (commands: string) => attempt('bash', ['--norc', '-uc', commands], { timeout: 180_000 });

/** Repeats the commands of a section until their output contains all parts. */
async function expectOutput(runbook: string, section: Section, ...parts: (string | RegExp)[]): Promise<void> {
  const fits = (text: string) =>
    parts.every((part) => (typeof part === 'string' ? text.includes(part) : part.test(text)));
  let said = '';
  for (const deadline = Date.now() + 90_000; Date.now() < deadline; await delay(2_000)) {
    const { stdout, stderr } = await follow(runbook, section);
    said = stdout + stderr;
    if (fits(said)) return;
  }
  expect.fail(`${section} of ${runbook} does not show ${parts.join(' and ')}, but:\n${said.slice(-4_000)}`);
}

async function fix(runbook: string): Promise<string> {
  const { code, stdout, stderr } = await follow(runbook, 'Fix');
  expect({ runbook, code, stderr }).toEqual({ runbook, code: 0, stderr: '' });
  return stdout;
}

const scale = (kind: string, component: string, replicas: number) =>
  world.kubectl('scale', kind, '-l', selectorOf(component), `--replicas=${replicas}`);
const selectorOf = (component: string) =>
  `app.kubernetes.io/instance=${release},app.kubernetes.io/component=${component}`;

async function createForm(): Promise<number> {
  const headers = { Authorization: `Bearer ${await world.token('demo-intake')}`, 'Content-Type': 'application/json' };
  const applicant = { addressAs: 'Kim', channels: [{ channel: 'email', address: 'kim@example.org' }] };
  const body = JSON.stringify({ definitionId: 'business-licence', applicant });
  const { status } = await fetch(`${world.url}/form/v1/forms`, { method: 'POST', headers, body });
  return status;
}

/** Maps each command in a Diagnosis or Verification section to the text of a runbook that contains it. */
const commands = new Map(
  runbookNames().flatMap((name) => {
    const text = readRunbook(name);
    return (['Diagnosis', 'Verification'] as const)
      .flatMap((section) => commandsOf(text, section).split('\n'))
      .filter((line) => line !== '')
      .map((line) => [line, text] as const);
  }),
);
// `kubectl top` needs a metrics server, which the cluster of the tests does not have.
const possible = [...commands].filter(([line]) => !line.includes(' top pods '));

it.each(possible)('%s', async (line, text) => {
  const { stdout, stderr } = await runCommands(`${preludeOf(text, { namespace, release })}\n${line}`);
  expect(stderr.replace(/^No resources found.*\n/gm, '')).toBe('');
  // Expect only the name of the metric, because a series with the command's labels may not exist before its first
  // event.
  const metric = /^metrics .*'(\w+)'/.exec(line)?.[1];
  if (metric !== undefined) expect(stdout).toContain(metric);
});

describe('an incident', () => {
  it.each(['redis', 'postgres'])(
    'store-down: %s is gone',
    async (store) => {
      await scale('statefulset', store, 0);
      const cause = expectOutput('store-down', 'Diagnosis', `formgate_dependency_up{dependency="${store}"} 0`);
      await cause.finally(() => fix('store-down'));
      await expectOutput('store-down', 'Verification', `formgate_dependency_up{dependency="${store}"} 1`);
      if (store === 'redis') await expectOutput('store-down', 'Verification', 'is reachable again');
    },
    300_000,
  );

  it('reconciler-late: somebody has suspended the CronJob', async () => {
    await world.kubectl('patch', 'cronjob', `${fullname}-reconciler`, '-p', '{"spec":{"suspend":true}}');
    await expectOutput('reconciler-late', 'Diagnosis', /reconciler +true/);
    await fix('reconciler-late');
    await expectOutput('reconciler-late', 'Verification', 'formgate_reconciler_last_success_timestamp_seconds{');
    await expectOutput('reconciler-late', 'Diagnosis', /reconciler +false/);
  }, 300_000);

  it('drafts-overdue: a run works off what is due', async () => {
    expect(await fix('drafts-overdue')).toContain('created');
    await expectOutput('drafts-overdue', 'Verification', /formgate_oldest_overdue_draft_seconds\S* 0/);
  }, 300_000);

  it('outbox-stuck: the event service is gone', async () => {
    await scale('deployment', 'platform-server', 0);
    await expect.poll(createForm, { timeout: 30_000 }).toBe(201);
    await expectOutput('outbox-stuck', 'Diagnosis', 'outbox delivery');
    await fix('outbox-stuck');
    await expectOutput('outbox-stuck', 'Verification', 'outbox delivery recovered');
    await expectOutput('outbox-stuck', 'Verification', /formgate_outbox_oldest_undelivered_seconds\S* 0/);
  }, 300_000);

  it.each(['service-down', 'form-api-availability'])(
    '%s: an upgrade whose image does not exist',
    async (runbook) => {
      await world.helm('upgrade', release, 'charts/formgate', '--reuse-values', '--set', 'image.tag=missing');
      await expectOutput('service-down', 'Diagnosis', /Err(Image|ImageNever)Pull|ImagePullBackOff/);
      expect(await fix(runbook)).toContain('Rollback was a success');
      const { code, stderr } = await follow('service-down', 'Verification');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    },
    600_000,
  );

  it('key-ring-old: the key is rotated', async () => {
    const [, key = ''] = /echo "(k[\s\S]*:[\s\S]*)"/.exec(commandsOf(readRunbook('key-ring-old.md'), 'Fix')) ?? [];
    expect(key).not.toBe('');
    const jsonpath = 'jsonpath={.data.TOKEN_HANDLER_KEY_RING}';
    const stored = await world.kubectl('get', 'secret', `${fullname}-keys`, '-o', jsonpath);
    const old = Buffer.from(stored, 'base64').toString();
    const fresh = (await runCommands(`echo "${key}"`)).stdout.trim();
    let rotated = 0;
    for (const ring of [`${old},${fresh}`, `${fresh},${old}`]) {
      const data = { TOKEN_HANDLER_KEY_RING: Buffer.from(ring).toString('base64') };
      await world.kubectl('patch', 'secret', `${fullname}-keys`, '-p', JSON.stringify({ data }));
      rotated = Date.now();
      await fix('key-ring-old');
    }
    await expectOutput('key-ring-old', 'Verification', /formgate_key_ring_old_secrets 0/);
    // Pods with the previous order of the keys may still be stopping.
    const oldestAge = async () => {
      const { stdout } = await follow('key-ring-old', 'Verification');
      const ages = [...stdout.matchAll(/^formgate_key_ring_current_key_age_seconds (\S+)/gm)];
      return Math.max(...ages.map(([, age]) => Number(age)));
    };
    const isOfNewKey = async () => (await oldestAge()) <= (Date.now() - rotated) / 1_000;
    await expect.poll(isOfNewKey, { timeout: 60_000 }).toBe(true);
  }, 600_000);

  it.each(['certificate-expiring', 'identity-provider-down'])(
    '%s: all pods are restarted',
    async (runbook) => {
      expect(await fix(runbook)).toContain('restarted');
      for (const component of ['forms', 'token-handler', 'platform-server'])
        await world.kubectl('rollout', 'status', 'deployment', '-l', selectorOf(component), '--timeout=180s');
    },
    600_000,
  );

  it.each(['event-loop-blocked', 'form-api-latency'])(
    '%s: pods are added',
    async (runbook) => {
      await fix(runbook);
      await world.kubectl('rollout', 'status', 'deployment', '-l', selectorOf('forms'), '--timeout=180s');
      await scale('deployment', 'forms', 2);
    },
    300_000,
  );

  it('quarantine-growing: all items are released, of which there are none', async () => {
    expect(await fix('quarantine-growing')).toBe('The quarantine is empty.\n');
  });
});
