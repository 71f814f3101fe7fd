// Tests that every route that changes data has an audit event or a reason for having none, and that docs/audit.md lists
// these routes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { auditActions, objectParams } from '../../src/service/operations/audit-actions.ts';
import { auditOf, auditReference, auditSchema, needsAudit } from './audit-reference.ts';
import { routedProcesses } from './route-tables.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const routes = routedProcesses.flatMap((process) => process.routes);

test('every route that changes something has an audit event, or says why not', () => {
  const changing = routes.filter(needsAudit);
  expect(changing.length).toBeGreaterThan(40);
  const silent = changing.filter((route) => auditOf(route) === undefined);
  expect(silent.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

test('a route that changes nothing has no audit event, except the list of forms, which may contain form data', () => {
  const reading = routes.filter((route) => !needsAudit(route) && auditOf(route) !== undefined);
  expect(reading.map(({ method, path }) => `${method} ${path}`)).toEqual(['get /form/v1/forms']);
});

test('the path of a route names the object of its events, unless the request creates or finds it', () => {
  const nameless = routes.flatMap((route) => {
    const audit = auditOf(route);
    const actions = Array.isArray(audit) ? audit : [];
    return actions.filter((action) =>
      objectParams[auditActions[action].object].some((name) => !route.path.includes(`:${name}`)),
    );
  });
  const found = [
    ...['form.create', 'form.read-data', 'form.search', 'form.submit', 'register.create'],
    ...['session.list', 'session.sign-in', 'session.sign-out', 'subscription.create'],
  ];
  expect([...new Set(nameless)].sort()).toEqual(found);
});

test('docs/audit.md agrees with the code (npm run docs updates it)', () => {
  expect(read('docs/audit.md')).toBe(auditReference(routedProcesses));
});

test('the example in docs/audit.md has the name under which the form service logs', () => {
  const [, name] = /^await runService\('([\w-]+)'/m.exec(read('src/forms/main.ts')) ?? [];
  const [, example = ''] = /^```json\n([^`]+)```/m.exec(read('docs/audit.md')) ?? [];
  expect(JSON.parse(example)).toMatchObject({ name });
});

test('docs/audit-event.schema.json agrees with the code (npm run docs updates it)', () => {
  expect(read('docs/audit-event.schema.json')).toBe(auditSchema());
});
