// Generates docs/form-statuses.md from the catalogue of form statuses and actions.
import {
  type Action,
  actions,
  callersOf,
  type FormStatus,
  formStatuses,
  operations,
  requests,
  statuses,
  statusesForAction,
} from '../../src/forms/forms/catalogue.ts';

const introduction = `# Form statuses and operations

A form is created as a Draft. The tables list its statuses, and who may do what in which status. Callers reach only forms
of their own tenant; an intake application reaches only those of applicants without an account.

This page is written by \`npm run docs\` from \`src/forms/forms/catalogue.ts\`; a test fails if it differs.`;

const actionNames = Object.keys(actions) as Action[];
const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

function statusRow(status: FormStatus): string {
  const entry = statuses[status];
  const expiry = 'expiry' in entry ? entry.expiry.description : 'Does not expire.';
  const possible = actionNames.filter((action) => statusesForAction(action).includes(status));
  return `| ${status} | ${entry.description} | ${expiry} | ${code(possible)} |`;
}

function actionRow(action: Action): string {
  const { description, move, event } = actions[action];
  const from = statusesForAction(action).join(', ');
  return `| \`${action}\` | ${from} | ${move?.to ?? ''} | ${callersOf(action)} | ${event ? `\`${event}\`` : ''} | ${description} |`;
}

function actionTable(names: string[]): string[] {
  const head = ['| action | status before | status after | who (in which status) | event | what it does |'];
  return [...head, '| --- | --- | --- | --- | --- | --- |', ...names.map((name) => actionRow(name as Action))];
}

export const formStatusPage = `${[
  introduction,
  '',
  '## Statuses',
  '',
  '| status | meaning | expiry | possible actions |',
  '| --- | --- | --- | --- |',
  ...formStatuses.map(statusRow),
  '',
  'A form on hold (`hold`) is neither locked nor deleted until its `release`, which restarts the period.',
  '',
  '## Requests',
  '',
  ...actionTable(Object.keys(requests)),
  '',
  '## Operations',
  '',
  '`POST /form/v1/forms/{formId}` with the operation in the body, such as `{"operation": "submit"}`:',
  '',
  ...actionTable(Object.keys(operations)),
].join('\n')}\n`;
