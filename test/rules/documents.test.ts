// Tests that the links in documents work, and that the files and scripts that documents name exist.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { defaultRealms } from '../../dev/access/default-realms.ts';
import { definitionSchema } from '../../src/forms/registration.ts';
import { codeMail } from '../../src/platform-server/notifications/code-mail.ts';
import { createUrns } from '../../src/service/urn.ts';
import { clientFields } from '../../src/token-handler/platform-registration.ts';
import { droppedNames } from '../../src/token-handler/targets/response-headers.ts';
import { listFiles, sourceFolders } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const documents = [
  { path: 'README.md', text: readme },
  { path: 'CHANGELOG.md', text: readFileSync(join(root, 'CHANGELOG.md'), 'utf8') },
  ...listFiles(root, ['docs'], '.md'),
];
const files = listFiles(root, [...sourceFolders, 'docs'], '').map(({ path }) => path);

test('every link to a file of the repository works', () => {
  const dead = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => normalize(join(dirname(path), target)))
      .filter((target) => !existsSync(join(root, target)))
      .map((target) => `${path}: ${target}`),
  );
  expect(dead).toEqual([]);
});

test('docs/target-headers.md names every response header that the proxy drops', () => {
  const text = readFileSync(join(root, 'docs/target-headers.md'), 'utf8').toLowerCase();
  expect(droppedNames.filter((name) => !text.includes(`\`${name.toLowerCase()}\``))).toEqual([]);
});

test('docs/form-definitions.md describes every member of a form definition', () => {
  const text = readFileSync(join(root, 'docs/form-definitions.md'), 'utf8');
  const { retention, ...others } = definitionSchema.properties;
  const members = [...Object.keys(others), ...Object.keys(retention.properties).map((name) => `retention.${name}`)];
  expect(members.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([]);
});

test('docs/operations.md describes every field of a client', () => {
  const text = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const table = text.slice(
    text.indexOf('| `id` | Must equal'),
    text.indexOf('The configuration service refuses a field'),
  );
  expect(Object.keys(clientFields).filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test('every source file that a document names exists', () => {
  const unknown = documents
    .filter(({ path }) => !path.startsWith('docs/specification'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/`([\w/.-]+\.(?:ts|sql))`/g)]
        .map(([, name = '']) => name)
        .filter((name) => !files.some((file) => file === name || file.endsWith(`/${name}`)))
        .map((name) => `${path}: ${name}`),
    );
  expect(unknown).toEqual([]);
});

test('every script that a document names is in package.json', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const named = documents.flatMap(({ text }) => [...text.matchAll(/`npm run ([\w:-]+)/g)].map(([, name = '']) => name));
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

test('the commands in the README find the code in the mail of the platform server', () => {
  const [, first = '', last = ''] = /grep -oE '([^']+)' \| head -1 \| grep -oE '([^']+)'/.exec(readme) ?? [];
  const { text } = codeMail({
    to: { name: 'Ana', address: 'ana@example.org' },
    code: 'K2TPX4',
    reason: 'Use this code to open your draft.',
    language: 'en',
  });
  const found = new RegExp(first).exec(JSON.stringify([{ subject: 'Your code', text }]))?.[0] ?? '';
  expect(new RegExp(last).exec(found)?.[0]).toBe('K2TPX4');
});

test('docs/keycloak.md gives service accounts the same roles as npm start', () => {
  const urns = createUrns('urn:example');
  const core = defaultRealms({ urns, serviceSecret: () => '' }).find(({ name }) => name === 'core');
  const text = readFileSync(join(root, 'docs/keycloak.md'), 'utf8');
  const services = ['tenant-service', 'configuration-service', 'event-service', 'notification-service'];
  for (const name of ['token handler', 'form service']) {
    const [, ...cells] = (text.split('\n').find((line) => line.startsWith(`| ${name} | \``)) ?? '')
      .split('|')
      .slice(1, -1);
    const documented = cells.map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, role]) => role));
    const account = core?.clients.find(({ clientId }) => clientId === urns.service(name.replace(' ', '-')));
    const roles = account?.roles?.clients ?? {};
    expect(documented).toEqual(services.map((service) => roles[urns.service(service)] ?? []));
    expect(Object.keys(roles).every((id) => services.some((service) => urns.service(service) === id))).toBe(true);
  }
});
