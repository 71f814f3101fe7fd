// Tests what requests for a large form definition cost the main thread after the first one. Each limit is a share of
// the work that would otherwise be repeated, measured in the same run.
import { expect, it } from 'vitest';
import type { Configuration } from '../../platform/configuration.ts';
import type { Caller } from '../../service/auth/identity.ts';
import { decide, decideCreate, requireOpenIntake } from '../forms/policy.ts';
import { type FormDefinition, mayReadDefinition, parseDefinition } from './definition.ts';
import { createDefinitionTexts } from './definition-texts.ts';
import { createDefinitionSource } from './source.ts';

/** Returns the processor time of 20 calls in milliseconds. */
function spent(work: () => unknown): number {
  const before = process.threadCpuUsage();
  for (let nth = 0; nth < 20; nth += 1) work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

const named = (kind: string) => Array.from({ length: 50_000 }, (_, nth) => `${kind}-${nth}`);
const [applicantRoles, clerkRoles, assessorRoles] = [named('applicant'), named('clerk'), named('assessor')];
const intake = { closes: '2026-01-01T00:00:00Z' };
const permit = parseDefinition('permit', { name: 'Permit', applicantRoles, clerkRoles, assessorRoles, intake });
const caller = { subject: 'ana', issuer: 'demo', roles: new Set(['one', 'other']) } as unknown as Caller;
const form = { createdBy: { id: 'ana' }, issuer: 'demo', status: 'Draft', anonymousApplicant: false };

it.each<[string, (definition: FormDefinition) => unknown]>([
  ['read the definition', (definition) => mayReadDefinition(caller.roles, definition)],
  ['read a form', (definition) => decide('read-data', caller, form as never, definition)],
  ['create a form', (definition) => decideCreate(caller, definition, false)],
  ['apply before the intake opens', (definition) => requireOpenIntake(caller, definition, new Date())],
])('whether a caller may %s costs little, also if the definition names 150,000 roles', (_name, ask) => {
  const asked = () => {
    try {
      ask(permit);
    } catch {
      // The caller has none of the roles.
    }
  };
  asked();
  const scans = spent(() =>
    [...applicantRoles, ...clerkRoles, ...assessorRoles].some((role) => caller.roles.has(role)),
  );
  expect(spent(asked)).toBeLessThan(scans / 8);
});

it.each([true, false])('a definition of two megabytes is written as text only once (all fields: %s)', (isManager) => {
  const properties = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, nth) => [
      `field${nth}`,
      { type: 'string', title: `Field ${nth}`, maxLength: 100 },
    ]),
  );
  const large = parseDefinition('large', { name: 'Large', dataSchema: { type: 'object', properties } });
  const textOf = createDefinitionTexts(() => new Date());
  expect(JSON.parse(textOf('demo', large, isManager).toString())).toMatchObject({
    id: 'large',
    dataSchema: { properties },
  });
  const writes = spent(() => JSON.stringify(large.dataSchema));
  expect(spent(() => textOf('demo', large, isManager))).toBeLessThan(writes / 8);
  const changed = parseDefinition('large', { name: 'Changed' });
  const nameIn = (tenant: string, definition: FormDefinition) =>
    JSON.parse(textOf(tenant, definition, isManager).toString()).name;
  expect(nameIn('other', changed)).toBe('Changed');
  expect(nameIn('demo', large)).toBe('Large');
  expect(nameIn('demo', changed)).toBe('Changed');
});

it('a tenant whose large definitions drive each other out of the cache gets 503, and other tenants their own', () => {
  let now = 0;
  const textOf = createDefinitionTexts(() => new Date(now));
  const large = (id: string) => parseDefinition(id, { name: id, dataSchema: { title: 'x'.repeat(9 * 1_048_576) } });
  const [four, small] = [['a', 'b', 'c', 'd'].map(large), parseDefinition('small', { name: 'Small' })];
  const read = () => four.map((one) => textOf('demo', one, false).length);
  expect(read()).toHaveLength(4);
  expect(read).toThrow(expect.objectContaining({ slug: 'busy', headers: { 'Retry-After': '5' } }));
  expect(JSON.parse(textOf('other', small, false).toString()).name).toBe('Small');
  now += 60_000;
  expect(textOf('demo', four[0] as FormDefinition, false).length).toBeGreaterThan(9 * 1_048_576);
});

it('many tenants with large definitions write at most 4 MiB of text a second together', () => {
  let now = 0;
  const textOf = createDefinitionTexts(() => new Date(now));
  const definitions = Array.from({ length: 40 }, (_, nth) =>
    parseDefinition(`large-${nth}`, { name: 'Large', dataSchema: { title: 'x'.repeat(1_048_576) } }),
  );
  let written = 0;
  const known = new Set<Buffer>();
  const read = (tenant: string, nth: number) => {
    try {
      const text = textOf(tenant, definitions[nth % 40] as FormDefinition, false);
      if (!known.has(text)) written += text.length;
      known.add(text);
    } catch (error) {
      expect(error).toMatchObject({ slug: 'busy' });
    }
  };
  for (let nth = 0; nth < 400; nth += 1) read(`tenant-${nth % 10}`, nth);
  const burst = written;
  for (let step = 0; step < 1_000; step += 1) {
    now += 10;
    read(`tenant-${step % 10}`, step);
  }
  expect(burst).toBeLessThan(140 * 1_048_576);
  expect(written - burst).toBeLessThan(45 * 1_048_576);
});

it('a definition with 100,000 fields is found without listing its fields again', async () => {
  const fields = Object.fromEntries(Array.from({ length: 100_000 }, (_, nth) => [`field ${nth}`, 1]));
  const stored = { revision: 0, configuration: { name: 'Wide', ...fields } };
  const activeOrLatest: Configuration['activeOrLatest'] = async (namespace, _name, _owner, read) => {
    const found = namespace === 'form-service' ? stored : undefined;
    read?.lacks?.(found);
    return found;
  };
  const { find } = createDefinitionSource({ activeOrLatest });
  const ask = () => find('demo', 'wide', { permission: true });
  expect(await ask()).toMatchObject({ id: 'wide', name: 'Wide' });
  const before = process.threadCpuUsage();
  for (let nth = 0; nth < 20; nth += 1) await ask();
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(spent(() => Object.keys(stored.configuration)) / 8);
});

it('a definition with 20,000 unknown fields costs less to read than its text does', () => {
  const fields = Array.from({ length: 20_000 }, (_, nth) => [`field${nth}`, nth]);
  const text = JSON.stringify({ name: 'Large', ...Object.fromEntries(fields), dataSchema: { type: 'object' } });
  const definition: unknown = JSON.parse(text);
  const reads = spent(() => JSON.parse(text));
  expect(spent(() => parseDefinition('large', definition))).toBeLessThan(reads / 8);
});
