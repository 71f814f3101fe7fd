// Tests that the editor changes only the edited members of a definition, and shows each problem at its control and
// line.
import { expect, it } from 'vitest';
import {
  definitionOf,
  draftOf,
  placedProblems,
  syntaxProblems,
} from '../../web/console/definitions/editor/definition-draft.ts';

const definition = {
  id: 'permit',
  name: 'Permit',
  description: 'A permit',
  anonymousApply: true,
  applicantRoles: ['applicant'],
  clerkRoles: [],
  retention: { lockAfter: 'P15D', other: 1 },
  dataSchema: { type: 'object', properties: { a: { type: 'string' } } },
  uiSchema: { type: 'VerticalLayout', elements: [] },
  formDraftUrlTemplate: 'https://example.org/{{id}}',
  intake: { start: '2026-01-01' },
};

it('what nobody has edited stays as it was', () => {
  expect(definitionOf('permit', draftOf('permit', definition), definition)).toEqual(definition);
  const bare = { id: 'bare', name: 'Bare', anonymousApply: false };
  expect(definitionOf('bare', draftOf('bare', bare), bare)).toEqual(bare);
});

it('a definition without a name has its id as the name, as the form service shows it', () => {
  const draft = draftOf('bare', { anonymousApply: false });
  expect([draft.name, syntaxProblems(draft)]).toEqual(['bare', []]);
});

it('the box for one form each shows what the service does, and its tick can be removed', () => {
  const bare = { id: 'bare', name: 'Bare', anonymousApply: false };
  const draft = draftOf('bare', bare);
  expect(draft.oneFormPerApplicant).toBe(true);
  expect(definitionOf('bare', { ...draft, oneFormPerApplicant: false }, bare)).toEqual({
    ...bare,
    oneFormPerApplicant: false,
  });
  for (const [former, next] of [
    [true, false],
    [false, true],
  ]) {
    const stored = { ...bare, oneFormPerApplicant: former };
    expect(definitionOf('bare', draftOf('bare', stored), stored)).toEqual(stored);
    const changed = { ...draftOf('bare', stored), oneFormPerApplicant: next === true };
    expect(definitionOf('bare', changed, stored)).toEqual({ ...bare, oneFormPerApplicant: next });
  }
});

it('what was emptied is removed, and what was entered is trimmed', () => {
  const draft = {
    ...draftOf('permit', definition),
    description: '',
    lockAfter: '',
    uiSchema: ' ',
    assessorRoles: ' a ,, b ',
  };
  const { description: _d, uiSchema: _u, ...rest } = definition;
  expect(definitionOf('permit', draft, definition)).toEqual({
    ...rest,
    assessorRoles: ['a', 'b'],
    retention: { other: 1 },
  });
});

it('problems are at their control, and in a schema on their line', () => {
  const draft = draftOf('permit', definition);
  const place = (pointer: string) => {
    const [found] = placedProblems([{ pointer, detail: 'is wrong', severity: 'error' }], draft);
    return `${found?.control}: ${found?.text}`;
  };
  expect(place('/dataSchema/properties/a/type')).toBe('dataSchema: Data schema, line 5: is wrong (/properties/a/type)');
  expect(place('/retention/lockAfter')).toBe('lockAfter: Retention: is wrong');
  expect(place('/name')).toBe('name: name: is wrong');
  expect(place('/intake/start')).toBe('others: Other members, line 4: is wrong (/intake/start)');
  expect(syntaxProblems({ ...draft, uiSchema: '{\n"a" 1}', others: '[]' }).map(({ text }) => text)).toEqual([
    'UI schema, line 2: A colon is missing',
    'Other members, line 1: It must be an object',
  ]);
  expect(syntaxProblems({ ...draft, name: ' ' })).toEqual([
    { control: 'name', text: 'Enter a name', severity: 'error' },
  ]);
});
