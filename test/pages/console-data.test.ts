// Tests that the console shows form data under the labels of the form definition, and that no definition or data can
// break this display. Also tests a filter that the console's own fields cannot produce.
import { expect, it } from 'vitest';
import { folded } from '../../web/apply/model/search.ts';
import { filterOf, listRequest } from '../../web/console/forms/form-filter.ts';
import { labelledData } from '../../web/console/forms/labelled-data.ts';
import { cellValue, csvTextOf, formerOf, hasText } from '../../web/console/registers/register.ts';
import { isTenant } from '../../web/console/session/tenant-name.ts';

const dataSchema = {
  type: 'object',
  definitions: { city: { type: 'string', title: 'City', oneOf: [{ const: 'yxy', title: 'Whitehorse' }] } },
  properties: {
    servesFood: { type: 'boolean' },
    city: { $ref: '#/definitions/city' },
    people: { type: 'array', items: { properties: { firstName: { type: 'string' } } } },
    tags: { type: 'array' },
    loop: { $ref: '#/properties/loop' },
  },
};
const uiSchema = { type: 'VerticalLayout', elements: [{ scope: '#/properties/servesFood', label: 'Food?' }] };

it('takes labels from the UI schema, then titles, then names, in the order of the schema', () => {
  const data = { extra: null, tags: ['a', 1], people: [{ firstName: 'Ana' }], city: 'yxy', servesFood: false };
  expect(labelledData(data, { dataSchema, uiSchema })).toEqual([
    { label: 'Food?', value: 'No' },
    { label: 'City', value: 'Whitehorse' },
    { label: 'People', value: [{ label: '1', value: [{ label: 'First name', value: 'Ana' }] }] },
    { label: 'Tags', value: 'a, 1' },
    { label: 'Extra', value: 'Not answered' },
  ]);
});

it('shows yes and no in the words of the definition', () => {
  const owns = { type: 'boolean', oneOf: [{ const: true, title: 'Own' }, { const: false }] };
  const options = { textForTrue: 'Own', textForFalse: 'Rent' };
  const worded = { elements: [{ scope: '#/properties/home', options }] };
  expect(labelledData({ home: false }, { dataSchema: {}, uiSchema: worded })[0]?.value).toBe('Rent');
  const properties = { home: owns };
  expect(labelledData({ home: true }, { dataSchema: { properties } })[0]?.value).toBe('Own');
  expect(labelledData({ home: false }, { dataSchema: { properties } })[0]?.value).toBe('No');
});

it('shows whatever the definition does not describe', () => {
  expect(labelledData({ loop: 'x' }, { dataSchema, uiSchema })).toEqual([{ label: 'Loop', value: 'x' }]);
  expect(labelledData({ a: { b: 1 } }, { dataSchema: 'none', uiSchema: [1, null] })).toEqual([
    { label: 'A', value: [{ label: 'B', value: '1' }] },
  ]);
  expect(labelledData('text', {})).toEqual([{ label: 'Data', value: 'text' }]);
});

it('ends for deep data, and for names that mean something to JavaScript', () => {
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as object;
  expect(() => JSON.stringify(labelledData({ deep: JSON.parse('{"a":{"a":{"a":1}}}') }, {}))).not.toThrow();
  expect(labelledData({ deep }, {})).toHaveLength(1);
  const odd = JSON.parse('{"__proto__": "x", "constructor": "y", "toString": "z"}') as object;
  expect(labelledData(odd, {}).map(({ value }) => value)).toEqual(['x', 'y', 'z']);
});

it('a filter whose day is none is sent as it is, so that the service refuses it', () => {
  const { query } = listRequest(filterOf(new URLSearchParams('createdAfter=yesterday')), '');
  expect(query?.criteria).toBe('{"createDateAfter":"yesterday"}');
});

it.each([
  ['a number, where all values of the column are numbers', [{ value: 1 }, { value: null }, {}], '5', 5],
  ['a text, where one value of the column is a text', [{ value: 1 }, { value: 'a' }], '5', '5'],
  ['a text, where the column has no values', [{}], '5', '5'],
  ['the text, where it is no number', [{ value: 1 }], 'five', 'five'],
  ['nothing, where it is empty', [{ value: 1 }], '', undefined],
])('the cell of a new entry is %s', (_what, entries, text, expected) => {
  expect(cellValue(text, formerOf({}, entries, 'value'))).toBe(expected);
});

it('a member that is null stays null in a column of texts', () => {
  const entry = { value: 'a', note: null };
  expect(cellValue('null', formerOf(entry, [entry, { value: 'b', note: 'text' }], 'note'))).toBeNull();
});

it.each([
  ['education', true],
  ['é', true],
  ['12', true],
  ['label', false],
])('the search for %s in the values of an entry finds it: %s', (text, expected) => {
  expect(hasText({ value: 12, label: 'Éducation' }, folded(text))).toBe(expected);
});

it.each(['utf8', 'latin1'] as const)('a CSV file is decoded, whether it is UTF-8 or of Excel: %s', async (encoding) => {
  expect(await csvTextOf(new Blob([Buffer.from('value\né\n', encoding)]))).toBe('value\né\n');
});

it.each([
  ['banff', true],
  ['Banff', true],
  ['Town of Banff', true],
  ['town-of-banff', true],
  ['Town', false],
])('the address names the tenant of the session with %s: %s', (asked, expected) => {
  expect(isTenant(asked, { realm: 'banff', name: 'Town of Banff' })).toBe(expected);
});
