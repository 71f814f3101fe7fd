// Checks that the catalogue of form statuses is consistent with itself, with the API and with docs/form-statuses.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formStatusPage } from '../../../test/rules/form-status-reference.ts';
import { listFiles } from '../../../test/rules/source-files.ts';
import { events } from '../outbox/event-catalogue.ts';
import {
  type Action,
  actions,
  callersOf,
  expiringStatuses,
  formRoles,
  formStatuses,
  operationNames,
  statusesForAction,
} from './catalogue.ts';
import { operateFormRoute } from './operation-routes.ts';
import { operationBody } from './schema.ts';

const root = join(import.meta.dirname, '../../..');
const actionNames = Object.keys(actions) as Action[];

describe('the catalogue of form statuses', () => {
  it('matches docs/form-statuses.md, which npm run docs writes', () => {
    expect(readFileSync(join(root, 'docs/form-statuses.md'), 'utf8')).toBe(formStatusPage);
  });

  it('lets the expiry end Draft and Locked, and no other status', () => {
    expect(expiringStatuses).toEqual(['Draft', 'Locked']);
    expect(formStatuses).toEqual(['Draft', 'Locked', 'Submitted', 'Archived']);
  });

  it.each(actionNames)('describes %s: who may do it, in which status, and what it does', (action) => {
    const { description, roles } = actions[action];
    expect(description).toMatch(/^[A-Z].*\.$/);
    expect(Object.keys(roles).length).toBeGreaterThan(0);
    for (const role of Object.keys(roles)) expect(formRoles).toHaveProperty(role);
    expect(statusesForAction(action).length).toBeGreaterThan(0);
  });

  it('names an event of the event catalogue for every change of status', () => {
    for (const action of actionNames) {
      const { move, event } = actions[action];
      if (move) expect(event, action).toBeDefined();
      if (event !== undefined) expect(Object.keys(events)).toContain(event);
    }
  });

  it('defines the request schema and the API’s description of operations', () => {
    const { description } = operateFormRoute({} as Parameters<typeof operateFormRoute>[0]);
    for (const operation of operationNames) {
      expect(operationBody.parse({ operation })).toEqual({ operation });
      expect(description).toContain(`\`${operation}\` (`);
      expect(description).toContain(callersOf(operation));
    }
  });

  it('is the only list of statuses in the code', () => {
    // The catalogue of events also names statuses: for each event, the status that the form has afterwards.
    const catalogues = ['src/forms/forms/catalogue.ts', 'src/forms/outbox/event-catalogue.ts'];
    const files = listFiles(root, ['src', 'reconciler'], '.ts').filter(
      ({ path }) => !path.endsWith('.test.ts') && !catalogues.includes(path),
    );
    const listing = files.filter(({ text }) =>
      formStatuses.every((status) => new RegExp(`^[^/]*'${status}'`, 'm').test(text)),
    );
    expect(listing.map(({ path }) => path)).toEqual([]);
  });
});
