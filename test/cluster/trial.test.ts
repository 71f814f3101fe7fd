// Runs the commands of the trial in docs/operations.md unchanged, in an empty namespace and with a real Keycloak. The
// values are those of the example, with other host names, without TLS, and with the images of the tests.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { keycloakOfRun } from '../keycloak/keycloak-of-run.ts';
import { removeTrialRealms } from '../keycloak/trial-realms.ts';
import { createHttpBrowser } from '../support/http-browser.ts';
import { startTestMailbox, type TestMailbox } from '../support/mailbox.ts';
import { createTrialShell, trialBlocks } from '../support/trial-steps.ts';
import { attempt, run } from './commands.ts';
import { ingressAddress, ingressOrigin, openPassage, type Passage, passTo, reachIngress } from './ingress.ts';
import { imageOf } from './world.ts';

const project = join(import.meta.dirname, '../..');
/** The namespace that docs/operations.md uses. The label shows that a test created it. */
const namespace = 'formgate';
const ownLabel = 'formgate.dev/created-by=test-cluster';
const host = 'trial.formgate.test';
const site = ingressOrigin(host);

/** Cleanup functions, called in reverse order. */
const opened: (() => unknown)[] = [];
let folder: string;
let mailbox: TestMailbox;
let passages: Record<'keycloak' | 'mail' | 'ingress', Passage>;
let password: string;
beforeAll(async () => {
  const keycloak = keycloakOfRun();
  if (keycloak === undefined)
    throw new Error('There is no Keycloak: set KEYCLOAK_URL, or LAB to a folder with keycloak.sh.');
  password = keycloak.password;
  reachIngress();
  await removeTrial();
  await removeTrialRealms(keycloak, { areOurs: false });
  opened.push(() => removeTrialRealms(keycloak, { areOurs: true }));
  mailbox = await startTestMailbox();
  opened.push(() => mailbox.close());
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const node = await run('kubectl', ['get', 'nodes', '-o', `jsonpath=${path}`]);
  passages = {
    keycloak: await passTo(new URL(keycloak.url), node),
    mail: await passTo(new URL(mailbox.url), node),
    ingress: await openPassage(node),
  };
  opened.push(...Object.values(passages).map((passage) => () => passage.close()));
  folder = prepareFolder();
  opened.push(() => rmSync(folder, { recursive: true }));
}, 300_000);
afterAll(async () => {
  await removeTrial();
  for (const close of opened.reverse()) await close();
}, 300_000);

/**
 * Removes the release and the namespace that an earlier test has created. Throws if no test has created the namespace.
 */
async function removeTrial(): Promise<void> {
  const { code, stdout } = await attempt('kubectl', ['get', 'namespace', namespace, '--show-labels', '--no-headers']);
  if (code !== 0) return;
  if (!stdout.includes(ownLabel)) throw new Error(`The cluster has a namespace ${namespace} that no test has created.`);
  await attempt('helm', ['-n', namespace, 'uninstall', 'formgate', '--wait']);
  await run('kubectl', ['delete', 'namespace', namespace, '--timeout=180s']);
}

/** Creates a folder in which the commands find the files of the repository that they need, and the edited values. */
function prepareFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'formgate-trial-'));
  for (const name of ['package.json', 'node_modules', 'src']) symlinkSync(join(project, name), join(made, name));
  cpSync(join(project, 'charts'), join(made, 'charts'), { recursive: true });
  const file = join(made, 'charts/formgate/examples/trial.yaml');
  const { hostname, port } = ingressAddress();
  writeFileSync(file, stringify(editValues(readFileSync(file, 'utf8'))));
  // The host name is not in the DNS, so this file tells curl its address.
  writeFileSync(join(made, '.curlrc'), `connect-to = "${host}:${port}:${hostname}:${port}"\n`);
  return made;
}

/** Edits the values as docs/operations.md tells its reader to, and as this cluster requires. */
function editValues(text: string): object {
  const replaced = text
    .replaceAll('https://formgate.example.org', site)
    .replaceAll('formgate.example.org', host)
    .replaceAll('https://id.example.org/auth', passages.keycloak.url)
    .replaceAll('smtp://mail.example.org:587', passages.mail.url);
  const values = parse(replaced);
  expect(JSON.stringify(values)).not.toMatch(/(?<!@)\b(formgate|id|mail)\.example\.org/);
  delete values.ingress.tls;
  values.tokenHandler.allowInsecureRedirectUris = true;
  Object.assign(values.ingress, {
    preset: process.env.INGRESS_PRESET || 'traefik',
    className: process.env.INGRESS_CLASS || 'traefik',
  });
  values.tests.url = passages.ingress.url;
  const [repository, tag] = imageOf('IMAGE').split(/:(?=[^:]+$)/);
  const store = { image: imageOf('DATA'), storage: { enabled: false } };
  const port = (passage: Passage) => Number(new URL(passage.url).port || 80);
  return {
    ...values,
    image: { repository, tag },
    bundled: { enabled: true, postgres: store, redis: store },
    networkPolicy: {
      ipFamilies: (process.env.CLUSTER_IP_FAMILIES ?? 'IPv4').split(','),
      egress: {
        access: { ports: [port(passages.keycloak)] },
        smtp: { ports: [port(passages.mail)] },
        ingress: { ports: [port(passages.ingress)] },
      },
    },
    crds: { keep: false },
  };
}

it('ends with a person who signs in and calls a target, when its commands are followed', async () => {
  const env = { SITE: site, KEYCLOAK: passages.keycloak.url, KEYCLOAK_PASSWORD: password, CURL_HOME: folder };
  const follow = createTrialShell({ cwd: folder, env });
  const [addresses, setup, install, client, definition, test, ...others] = trialBlocks();
  expect(others).toEqual([]);
  for (const name of ['SITE', 'KEYCLOAK', 'KEYCLOAK_PASSWORD']) expect(addresses).toContain(`export ${name}=`);

  expect(await follow(setup)).toContain('demo: created the client demo-script');
  await run('kubectl', ['label', 'namespace', namespace, ownLabel]);
  await follow(install);
  expect(await follow(client)).toContain('permits-web');
  expect(await follow(definition)).toContain('"sent":true');
  await mailbox.waitFor(({ to, subject }) => to.includes('you@example.org') && subject.includes('code'));
  const said = await follow(test);
  expect(said).toContain('Phase:          Succeeded');
  expect(said).toContain('passed  tester@example.org signs in with permits-web and calls the target forms');

  const browser = createHttpBrowser();
  const callbackUrl = `${site}/token-handler/clients/permits-web/callback`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl });
  const form = await browser.open(`${site}/token-handler/clients/permits-web/auth?${query}`);
  const printed = await follow(`${/^secret\(\) \{[\s\S]*?^\}/m.exec(client ?? '')?.[0]}\nsecret demo.tester-password`);
  await browser.submit(form, { username: 'tester@example.org', password: printed });
  const sessions = await browser.open(`${site}/token-handler/sessions`);
  expect([sessions.status, JSON.parse(sessions.text)]).toMatchObject([200, [{ tenant: expect.anything() }]]);
}, 600_000);
