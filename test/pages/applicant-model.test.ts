// Tests the model of a form in the applicant's pages: pages, fields, rules, findings and messages, registers, and the
// comparison of two versions.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fileName } from '../../src/forms/apply/file-routes.ts';
import { addressOf, fragmentOf, hashOf, pathnameOf } from '../../web/apply/address.ts';
import { autofillOf } from '../../web/apply/model/autofill.ts';
import { merge } from '../../web/apply/model/conflict.ts';
import { defaultsOf, newItem } from '../../web/apply/model/defaults.ts';
import { type Place, pagesOf } from '../../web/apply/model/elements.ts';
import { titleAt } from '../../web/apply/model/fields.ts';
import {
  mergedFiles,
  storedName,
  withFile,
  withoutAnswer,
  withoutFile,
  withoutItem,
} from '../../web/apply/model/files.ts';
import {
  isObject,
  type JsonObject,
  pathOf,
  pathWithoutItem,
  pointerOf,
  valueAt,
  withAnswer,
  withValueAt,
} from '../../web/apply/model/json.ts';
import { messageFor } from '../../web/apply/model/messages.ts';
import { numberOf } from '../../web/apply/model/numbers.ts';
import { fieldAt, fieldsOf, findingsFor, hiddenAnswerAt, visiblePages } from '../../web/apply/model/questions.ts';
import { choicesFrom, registerOf } from '../../web/apply/model/registers.ts';
import { isRequiredNow } from '../../web/apply/model/required.ts';
import { found } from '../../web/apply/model/search.ts';
import { withTitles } from '../../web/apply/model/titles.ts';
import { createValidator, matches } from '../../web/apply/model/validator.ts';
import { textsOf } from '../../web/apply/texts/texts.ts';

const placeOf = (schema: JsonObject): Place => ({ root: schema, schema, path: [] });
const control = (scope: string, more: object = {}) => ({ type: 'Control', scope: `#/properties/${scope}`, ...more });
const object = (properties: JsonObject, more: object = {}) => ({ type: 'object', properties, ...more });

function fieldsFor(schema: JsonObject, uiSchema?: unknown, data: unknown = {}) {
  const place = placeOf(schema);
  return pagesOf(uiSchema, place).flatMap((page) => fieldsOf(page.elements, place, data));
}

it('the purpose of a question is its option, or follows from its format or its name, except in lists', () => {
  const text = { type: 'string' };
  const email = { type: 'string', format: 'email' };
  const person = object({ firstName: text, dateOfBirth: { type: 'string', format: 'date' }, note: text, email });
  const schema = object({
    ...{ person, others: { type: 'array', items: person }, email },
    ...{ address: object({ addressLine1: text }), lastName: text, municipality: text },
  });
  const elements = [
    ...['person', 'others', 'email', 'address'].map((scope) => control(scope)),
    control('lastName', { options: { autocomplete: 'off' } }),
    control('municipality', { options: { autocomplete: false } }),
  ];
  const fields = fieldsFor(schema, { type: 'VerticalLayout', elements }, { others: [{}] });
  const purposes = fields.map((field) => [field.path.join('/'), autofillOf(field)]);
  expect(Object.fromEntries(purposes.filter(([, purpose]) => purpose !== undefined))).toEqual({
    'person/firstName': 'given-name',
    'person/dateOfBirth': 'bday',
    'person/email': 'email',
    email: 'email',
    'address/addressLine1': 'address-line1',
    lastName: 'off',
    municipality: 'address-level2',
  });
});

it('an answer is required while a condition or a dependency of the schema demands it', () => {
  const text = { type: 'string' };
  const when = (name: string, value: string, then: object) => ({
    ...{ if: { properties: { [name]: { const: value } }, required: [name] }, then },
  });
  const person = object(
    { kind: text, employer: text, phone: text, email: text },
    { allOf: [{ $ref: '#/definitions/employed' }], dependentRequired: { phone: ['email'] } },
  );
  const schema = object(
    { structure: text, number: text, owner: text, note: text, person, others: { type: 'array', items: person } },
    {
      definitions: { employed: when('kind', 'employed', { required: ['employer'] }) },
      allOf: [{ ...when('structure', 'company', { required: ['number'] }), else: { required: ['owner'] } }],
      dependencies: { note: ['number'] },
    },
  );
  const requiredIn = (data: JsonObject) =>
    fieldsFor(schema, undefined, data).flatMap((field) => (isRequiredNow(field, data) ? [field.path.join('.')] : []));
  expect(requiredIn({})).toEqual(['owner']);
  expect(requiredIn({ structure: 'company' })).toEqual(['number']);
  expect(requiredIn({ note: 'x' })).toEqual(['number', 'owner']);
  expect(requiredIn({ structure: 'company', person: { kind: 'employed', phone: '1' } })).toEqual([
    ...['number', 'person.employer', 'person.email'],
  ]);
  expect(requiredIn({ structure: 'company', others: [{}, { kind: 'employed' }] })).toEqual([
    ...['number', 'others.1.employer'],
  ]);
  // A condition may refer to a definition, which may refer to another one.
  const companies = {
    company: { properties: { structure: { $ref: '#/definitions/name' } }, required: ['structure'] },
    name: { const: 'company' },
  };
  const numbered = when('structure', 'company', { required: ['number'] });
  const referring = ($ref: string) =>
    object(
      { structure: text, number: text, owner: text },
      { definitions: companies, allOf: [{ ...numbered, if: { $ref }, else: { required: ['owner'] } }] },
    );
  const requiredWith = (reference: string, answers: JsonObject) =>
    fieldsFor(referring(reference)).flatMap((field) => (isRequiredNow(field, answers) ? [field.path.join('.')] : []));
  expect(requiredWith('#/definitions/company', { structure: 'company' })).toEqual(['number']);
  expect(requiredWith('#/definitions/company', { structure: 'person' })).toEqual(['owner']);
  expect(requiredWith('#/properties/structure', { structure: 'company' })).toEqual([]);
  // The preview of a definition shows the same data with another schema.
  const data = {};
  const requiredBy = (required: string[]) =>
    fieldsFor({ ...object({ note: text }), allOf: [{ required }] }).filter((field) => isRequiredNow(field, data));
  expect([requiredBy(['note']).length, requiredBy([]).length]).toEqual([1, 0]);
});

function messagesFor(schema: JsonObject, data: unknown, language: 'en' | 'fr' = 'en', uiSchema?: unknown): string[] {
  const texts = textsOf(language);
  const fields = withTitles(fieldsFor(schema, uiSchema, data), texts);
  return findingsFor(data, fields, createValidator(schema, 'urn:example')).map(({ finding, field }) =>
    field || finding.path.length === 0 ? messageFor(finding, field, texts) : pointerOf(finding.path),
  );
}

describe('pages', () => {
  const category = (label: string, more: object = {}) => ({ type: 'Category', label, elements: [], ...more });

  it.each(['stepper', 'pages', undefined])('are the categories of a categorization with the variant %s', (variant) => {
    const uiSchema = { type: 'Categorization', options: { variant }, elements: [category('One'), category('Two')] };
    expect(pagesOf(uiSchema, placeOf({})).map(({ title }) => title)).toEqual(['One', 'Two']);
  });

  it('are those of a categorization inside a layout or inside a categorization', () => {
    const inner = { type: 'Categorization', elements: [category('One')] };
    const uiSchema = {
      type: 'VerticalLayout',
      elements: [{ type: 'Categorization', elements: [inner, category('Two')] }],
    };
    expect(pagesOf(uiSchema, placeOf({})).map(({ title }) => title)).toEqual(['One', 'Two']);
  });

  it('may be hidden by a rule', () => {
    const rule = { effect: 'SHOW', condition: { scope: '#/properties/a', schema: { minLength: 1, type: 'string' } } };
    const pages = pagesOf(
      { type: 'Categorization', elements: [category('One'), category('Two', { rule })] },
      placeOf({}),
    );
    expect(visiblePages(pages, {}).map(({ title }) => title)).toEqual(['One']);
    expect(visiblePages(pages, { a: 'x' }).map(({ title }) => title)).toEqual(['One', 'Two']);
  });

  it.each([undefined, null, {}, [], 'x', { type: 'VerticalLayout' }])(
    'show a control for each property if the UI schema is %j',
    (uiSchema) => {
      const schema = object({ firstName: { type: 'string' }, age: { type: 'integer' } }, { allOf: [{ if: {} }] });
      const fields = fieldsFor(schema, uiSchema);
      expect(fields.map(({ label, kind }) => [label, kind])).toEqual([
        ['First name', 'text'],
        ['Age', 'integer'],
      ]);
    },
  );

  it('contain the elements inside unknown ones, and ignore what is wrong', () => {
    const uiSchema = {
      type: 'Carousel',
      elements: [
        control('a', { rule: { effect: 'SHOW' } }),
        control('b'),
        7,
        { elements: [control('a')] },
        { type: 'Control' },
      ],
    };
    expect(fieldsFor(object({ a: { type: 'string' } }), uiSchema).map(({ path }) => path)).toEqual([['a'], ['a']]);
  });
});

describe('fields', () => {
  it.each([
    [{ type: 'string' }, {}, 'text'],
    [{ type: 'string' }, { multi: true }, 'textarea'],
    [{ type: 'string', format: 'date' }, {}, 'date'],
    [{ type: 'string', format: 'time' }, {}, 'time'],
    [{ type: 'string', format: 'file-urn' }, {}, 'file'],
    [{ type: 'string', format: 'computed' }, {}, 'computed'],
    [{ type: ['string', 'null'] }, {}, 'text'],
    [{ type: ['null', 'integer'] }, {}, 'integer'],
    [{ type: 'number' }, {}, 'number'],
    [{ type: 'boolean' }, {}, 'checkbox'],
    [{ type: 'boolean' }, { radio: true }, 'yes-no'],
    [{ type: 'boolean', oneOf: [{ const: true, title: 'Own' }] }, {}, 'yes-no'],
    [{ enum: ['a', 'b'] }, {}, 'choice'],
    [{ const: 'a' }, {}, 'choice'],
    [{ oneOf: [{ const: 'a', title: 'A' }] }, {}, 'choice'],
    [{ type: 'array', items: { enum: ['a'] } }, {}, 'checkboxes'],
    [{ type: 'array', items: { type: 'string' } }, {}, 'list'],
    [{ type: 'array', items: { type: 'object' } }, {}, 'list'],
    [{ properties: {} }, {}, 'object'],
    [{ anyOf: [{ type: 'string', format: 'email' }, { type: 'object' }] }, {}, 'text'],
    [{ type: 'string', enum: [''] }, { register: { urn: 'urn:x:/configuration/data-register/a' } }, 'choice'],
    [{}, {}, 'text'],
    [true, {}, 'text'],
  ])('of the schema %j with the options %j are of the kind %s', (schema, options, kind) => {
    expect(fieldsFor(object({ a: schema }), control('a', { options }))[0]?.kind).toBe(kind);
  });

  it('take schemas from references and combinations, and end where a schema refers to itself', () => {
    const schema = object(
      { a: { $ref: '#/definitions/tree' } },
      { definitions: { tree: object({ name: { type: 'string' }, child: { $ref: '#/definitions/tree' } }) } },
    );
    const fields = fieldsFor(schema);
    expect(fields.length).toBeLessThan(100);
    expect(fields[1]).toMatchObject({ kind: 'text', path: ['a', 'name'], label: 'Name' });
  });

  it('know whether an answer is required, also in an object', () => {
    const schema = object({ a: object({ b: { type: 'string' } }, { required: ['b'] }) });
    expect(fieldsFor(schema, control('a/properties/b'))[0]?.isRequired).toBe(true);
  });

  it('are hidden and shown by rules that compare values, combine conditions and look for missing values', () => {
    const rule = (effect: string, condition: object) => ({ rule: { effect, condition } });
    const has = (value: unknown) => ({ scope: '#/properties/a', schema: { const: value } });
    const missing = { scope: '#/properties/a', schema: { not: {} } };
    const shown = (more: object, data: object) =>
      fieldsFor(object({ a: { type: 'string' }, b: { type: 'string' } }), control('b', more), data).length === 1;
    expect(shown(rule('SHOW', has('x')), { a: 'x' })).toBe(true);
    expect(shown(rule('SHOW', has('x')), {})).toBe(false);
    expect(shown(rule('HIDE', { type: 'OR', conditions: [has('x'), has('y')] }), { a: 'y' })).toBe(false);
    expect(shown(rule('SHOW', { type: 'AND', conditions: [has('x'), has('y')] }), { a: 'y' })).toBe(false);
    expect(shown(rule('HIDE', missing), {})).toBe(true);
  });
});

it.each([
  [{ enum: [''] }, '', true],
  [{ enum: [''] }, 'Banff', false],
  [{ enum: [''] }, undefined, false],
  [{ properties: { town: { enum: [''] } } }, { town: 'Banff' }, false],
])('the condition of a rule with the schema %j asks for an empty text: %j', (schema, value, expected) => {
  expect(matches(schema, value)).toBe(expected);
});

describe('messages', () => {
  const schema = object(
    {
      name: { type: 'string', title: 'Your name', minLength: 1, maxLength: 3 },
      kind: { title: 'Kind', enum: ['a', 'b'] },
      age: { type: 'integer', title: 'Age', minimum: 18 },
      day: { type: 'string', title: 'Day', format: 'date' },
      declaration: { type: 'boolean', title: 'It is true', const: true },
      address: object({ city: { type: 'string', title: 'City' } }, { required: ['city'] }),
      people: {
        type: 'array',
        title: 'People',
        items: object({ n: { type: 'string', title: 'Name' } }, { required: ['n'] }),
      },
    },
    { required: ['name', 'kind', 'declaration', 'address'] },
  );

  it('say what to do, in the order of the questions, also in objects that are missing', () => {
    expect(messagesFor(schema, {})).toEqual([
      'Enter an answer for “Your name”',
      'Choose an answer for “Kind”',
      'Tick the box “It is true”',
      'Enter an answer for “City”',
    ]);
  });

  it('name limits, formats and the number of an item', () => {
    const data = { name: 'Anna', kind: 'c', age: 17, day: '2026-02-30', declaration: false, address: {}, people: [{}] };
    expect(messagesFor(schema, data)).toEqual([
      '“Your name” must have at most 3 characters',
      'Choose an answer for “Kind”',
      '“Age” must be 18 or more',
      '“Day” must be a real date, like 27 3 2026',
      'Tick the box “It is true”',
      'Enter an answer for “City”',
      'Enter an answer for “People: number 1, Name”',
    ]);
    expect(messagesFor(schema, { ...data, age: 'x' }, 'fr')[2]).toBe('« Age » doit être un nombre entier, comme 12500');
  });

  it('name an example of the definition, if it has one', () => {
    const licence = { type: 'string', title: 'Licence', pattern: '^\\d{3}$' };
    const phone = { type: 'string', title: 'Phone', format: 'phone', examples: ['403 555 0100'] };
    const data = { licence: '1', phone: '1' };
    expect(messagesFor(object({ licence, phone }), data)).toEqual([
      '“Licence” is not in the right form',
      '“Phone” must be in the right form, like 403 555 0100',
    ]);
    const example = { ...licence, examples: ['123'] };
    expect(messagesFor(object({ licence: example }), data)).toEqual(['“Licence” must be in the right form, like 123']);
  });

  it('are those of the definition where it has some', () => {
    const own = object(
      { licence: { type: 'string', pattern: '^\\d{3}$', errorMessage: 'Must be three digits.' } },
      { required: ['licence'], errorMessage: { required: { licence: 'Enter your licence.' } } },
    );
    expect(messagesFor(own, { licence: '1' })).toEqual(['Must be three digits.']);
    expect(messagesFor(own, {})).toEqual(['Enter your licence.']);
  });

  it.each<[string, JsonObject, object, string[], string[]]>([
    [
      'one of two answers is missing',
      { anyOf: [{ required: ['phone'] }, { required: ['email'] }] },
      {},
      ['', '/phone', '/email'],
      ['/phone', '/email'],
    ],
    ['too few questions are answered', { minProperties: 2 }, { phone: '1' }, [''], []],
    ['answers exclude each other', { not: { required: ['phone', 'email'] } }, { phone: '1', email: 'a' }, [''], []],
    ['an answer is missing', { required: ['phone'] }, {}, [], ['/phone']],
  ])('are those of the form as a whole if %s', (_what, more, data, ofTheForm, atFields) => {
    const schema = object({ phone: { type: 'string' }, email: { type: 'string' } }, more);
    const findings = createValidator(schema)(data);
    const pointersOf = (wanted: boolean) =>
      findings.filter(({ concernsForm }) => concernsForm === wanted).map(({ path }) => pointerOf(path));
    expect(pointersOf(true)).toEqual(ofTheForm);
    expect(pointersOf(false)).toEqual(ofTheForm.length > 0 ? [] : atFields);
    const general = 'An answer is missing, or some answers do not go together. Check your answers';
    expect(messagesFor(schema, data).includes(general)).toBe(ofTheForm.includes(''));
  });

  it('about the form as a whole are those of the definition where it has some', () => {
    const errorMessage = { anyOf: 'Enter a phone number or an email address.' };
    const own = object({ phone: { type: 'string' } }, { anyOf: [{ required: ['phone'] }], errorMessage });
    expect(messagesFor(own, {})).toContain('Enter a phone number or an email address.');
  });

  it('exist in French for each English one', () => {
    const keysOf = (value: unknown): unknown =>
      isObject(value) ? Object.fromEntries(Object.keys(value).map((key) => [key, keysOf(value[key])])) : typeof value;
    expect(keysOf(textsOf('fr'))).toEqual(keysOf(textsOf('en')));
  });
});

describe('an answer that is not valid and that no question shows', () => {
  const rule = { effect: 'HIDE', condition: { scope: '#/properties/name', schema: { const: 'x' } } };
  const text = { type: 'string' };
  const person = object({ name: text, born: { ...text, title: 'Born on' } }, { required: ['born'] });
  const schema = object({ name: text, note: text, person, people: { type: 'array', items: person } });
  const detail = { type: 'VerticalLayout', elements: [control('name'), control('born', { rule })] };
  const hidden = (path: string, data: object, elements: object[]) => {
    const fields = fieldsFor(schema, { type: 'VerticalLayout', elements: [control('name'), ...elements] }, data);
    return pointerOf(hiddenAnswerAt(pathOf(path), fields, data) ?? ['none']);
  };

  it('is found by the path of its fault', () => {
    expect(hidden('/note', { note: 1 }, [])).toBe('/note');
    expect(hidden('/person/name', { name: 'x', person: { name: 1 } }, [control('person', { rule })])).toBe(
      '/person/name',
    );
    const people = control('people', { rule });
    expect(hidden('/people/0', { name: 'x', people: [1] }, [people])).toBe('/people');
    const shown = control('people', { options: { detail } });
    const data = { people: [{ name: 'x', born: 1 }] };
    expect(hidden('/people/0/born', data, [shown])).toBe('/people/0/born');
  });

  it('is the object around an answer that is missing', () => {
    expect(hidden('/person/born', { name: 'x', person: { name: 'Bo' } }, [control('person', { rule })])).toBe(
      '/person',
    );
  });

  it('does not exist if a question shows the value, or if nothing could be removed', () => {
    expect(hidden('', {}, [])).toBe('/none');
    expect(hidden('/note', {}, [])).toBe('/none');
    expect(hidden('/name', { name: 1 }, [])).toBe('/none');
    const shown = control('person', { options: { detail } });
    expect(hidden('/person/born', { person: { name: 'x' } }, [shown])).toBe('/none');
  });

  it('belongs to no visible question, also if it is in a section or list that is shown', () => {
    const elements = [control('person', { options: { detail } }), control('people', { options: { detail } })];
    const data = { person: { name: 'x', born: 1 }, people: [{ name: 'x', born: 1 }] };
    const fields = fieldsFor(schema, { type: 'VerticalLayout', elements: [control('name'), ...elements] }, data);
    for (const pointer of ['/person/born', '/people/0/born'])
      expect(fieldAt(pathOf(pointer), fields), pointer).toBeUndefined();
  });

  it('has the title of its schema as its label', () => {
    const labels = ['/person/born', '/people/0/born', '/person/oldName'].map((one) =>
      titleAt(pathOf(one), placeOf(schema)),
    );
    expect(labels).toEqual(['Born on', 'Born on', 'Old name']);
  });
});

describe('choices from a register', () => {
  const use = (register: object) => {
    const named = registerOf({ register: { urn: 'urn:x:/configuration/data-register/a b', ...register } });
    if (!named) throw new Error('The options name no register.');
    return named;
  };

  it('are texts, or the members that the control names', () => {
    const entry = { code: 'AB', name: 'Alberta', nameFr: 'Alberta (fr)', deep: { x: 1 } };
    expect(use({}).name).toBe('a b');
    expect(choicesFrom(['x', '', 'x', 3], { name: '', value: undefined, label: undefined })).toEqual([
      { value: 'x', label: 'x' },
      { value: 3, label: '3' },
    ]);
    expect(choicesFrom([entry], use({}))).toEqual([{ value: 'AB', label: 'Alberta', labelFr: 'Alberta (fr)' }]);
    expect(choicesFrom([entry], use({ value: 'name', label: 'code' }))).toMatchObject([
      { value: 'Alberta', label: 'AB' },
    ]);
    expect(choicesFrom([entry], use({ objectPathInArray: 'deep.x' }))).toMatchObject([{ value: 1, label: '1' }]);
    expect(choicesFrom([{ deep: {} }, null, 'x'], use({ value: 'deep' }))).toMatchObject([{ value: 'x' }]);
  });

  it('are found whatever case and accents are typed, first those that begin with the text', () => {
    const choices = ['New Québec', 'Québec', 'Alberta'].map((label) => ({ value: label, label }));
    expect(found(choices, ' quebec').map(({ label }) => label)).toEqual(['Québec', 'New Québec']);
  });
});

describe('two versions of a form', () => {
  const base = { data: { a: 1, b: { c: 1, d: 1 }, list: [1] }, files: {} };

  it('are merged where only one of them changed an answer', () => {
    const mine = { data: { a: 2, b: { c: 1, d: 2 }, list: [1] }, files: {} };
    const theirs = { data: { a: 1, b: { c: 2, d: 1 }, list: [1, 2] }, files: {} };
    expect(merge(base, mine, theirs)).toEqual({
      merged: { data: { a: 2, b: { c: 2, d: 2 }, list: [1, 2] }, files: {} },
      conflicts: [],
    });
  });

  it('conflict where both changed the same answer, also if one removed it', () => {
    const mine = { data: { a: 2, b: { c: 1, d: 1 } }, files: {} };
    const theirs = { data: { b: { c: 1, d: 1 }, list: [2] }, files: {} };
    const { merged, conflicts } = merge(base, mine, theirs);
    expect(merged).toEqual(theirs);
    expect(conflicts).toEqual([
      { path: ['data', 'a'], mine: 2, theirs: undefined },
      { path: ['data', 'list'], mine: undefined, theirs: [2] },
    ]);
  });
});

it('values are read and changed by path, and hostile names stay names', () => {
  const changed = withValueAt({ a: [{ b: 1 }] }, ['a', '0', '__proto__'], 'x');
  expect(JSON.stringify(changed)).toBe('{"a":[{"b":1,"__proto__":"x"}]}');
  expect(valueAt({}, ['constructor'])).toBeUndefined();
  expect(withValueAt({ a: 1, b: 2 }, ['a'], undefined)).toEqual({ b: 2 });
  expect(pathOf(pointerOf(['a/b', '~', 'ü %']))).toEqual(['a/b', '~', 'ü %']);
});

it('an answer that is removed leaves no empty object behind, except the root and the items of a list', () => {
  expect(withAnswer({ a: 1, b: { c: { d: 1 } } }, ['b', 'c', 'd'], undefined)).toEqual({ a: 1 });
  expect(withAnswer({ b: { c: { d: 1 }, e: 1 } }, ['b', 'c', 'd'], undefined)).toEqual({ b: { e: 1 } });
  expect(withAnswer({ list: [{ a: { b: 1 } }] }, ['list', '0', 'a', 'b'], undefined)).toEqual({ list: [{}] });
  expect(withAnswer({ a: 1 }, ['a'], undefined)).toEqual({});
  expect(withAnswer({ b: {} }, ['b', 'c'], '')).toEqual({ b: { c: '' } });
});

it.each<[string, unknown]>([
  ['12', 12],
  [' -12,5 ', -12.5],
  ['−3', -3],
  ['–3', '–3'],
  ['12.5', 12.5],
  ['1.500', 1.5],
  ['1,50', 1.5],
  ['0,1234', 0.1234],
  ['', undefined],
  ['50,000', '50,000'],
  ['1,500,000', '1,500,000'],
  ['1 500', '1 500'],
  ['1,5,0', '1,5,0'],
  ['1e3', '1e3'],
])('the number that a person types as “%s” is stored as %j', (typed, expected) => {
  expect(numberOf(typed)).toBe(expected);
});

describe('the files of a form', () => {
  const content = { data: { plan: 'u1', owners: [{ proof: 'u2;u3' }, { proof: 'u4' }] }, files: { a: 'u1', b: 'u2' } };
  const files = { ...content.files, c: 'u3', d: 'u4' };

  it('lose the file that another one replaces', () => {
    const replaced = withFile({ ...content, files }, ['plan'], { urn: 'u5', name: 'a', isMultiple: false });
    expect(replaced).toMatchObject({ data: { plan: 'u5' }, files: { a: 'u5', b: 'u2', c: 'u3', d: 'u4' } });
  });

  it('keep the files of a question that takes several, under names of their own', () => {
    const added = withFile({ ...content, files }, ['plan'], { urn: 'u5', name: 'a', isMultiple: true });
    expect(added).toMatchObject({ data: { plan: 'u1;u5' }, files: { a: 'u1', 'a (2)': 'u5' } });
  });

  it('lose those of an answer that is removed', () => {
    const content = { data: { a: { b: 'u1;u2' }, c: 'u3' }, files: { one: 'u1', two: 'u2', three: 'u3' } };
    expect(withoutAnswer(content, ['a'])).toEqual({ data: { c: 'u3' }, files: { three: 'u3' } });
    expect(withoutAnswer(content, ['a', 'b'])).toEqual({ data: { c: 'u3' }, files: { three: 'u3' } });
  });

  it('lose those of an item that is removed', () => {
    expect(withoutItem({ ...content, files }, ['owners'], 0)).toEqual({
      data: { plan: 'u1', owners: [{ proof: 'u4' }] },
      files: { a: 'u1', d: 'u4' },
    });
    const one = { data: { owners: [{ proof: 'u2' }] }, files };
    expect(withoutItem(one, ['owners'], 0)).toEqual({ data: {}, files: { a: 'u1', c: 'u3', d: 'u4' } });
    expect(withoutItem(one, ['absent'], 0)).toEqual(one);
  });

  it('lose the one that is removed', () => {
    expect(withoutFile({ data: { o: { plan: 'u1' } }, files }, ['o', 'plan'], 'u1')).toEqual({
      data: {},
      files: { b: 'u2', c: 'u3', d: 'u4' },
    });
  });
});

describe('the files that two windows have added', () => {
  it('are all kept if they have the same name, each under a name of its own', () => {
    const [mine, theirs] = [{ 'a.pdf': 'u1' }, { 'a.pdf': 'u2' }];
    expect(mergedFiles(mine, theirs, { plan: 'u1', photo: 'u2' })).toEqual({ 'a.pdf': 'u2', 'a.pdf (2)': 'u1' });
    expect(mergedFiles(mine, theirs, { plans: ['u2;u1'] })).toEqual({ 'a.pdf': 'u2', 'a.pdf (2)': 'u1' });
  });

  it('go away if no answer names them any more, and leave their name to the other file', () => {
    const [mine, theirs] = [{ old: 'u0', 'a.pdf': 'u1' }, { 'a.pdf': 'u2' }];
    expect(mergedFiles(mine, theirs, { plan: 'u1' })).toEqual({ 'a.pdf': 'u1' });
    expect(mergedFiles(mine, theirs, { plan: 'u2' })).toEqual({ 'a.pdf': 'u2' });
  });

  it('stay if both windows have them, even if no answer names them', () => {
    expect(mergedFiles({ other: 'u0', b: 'u1' }, { other: 'u0' }, {})).toEqual({ other: 'u0' });
  });
});

describe('the name under which a file is stored', () => {
  it.each([
    ['plan.pdf', 'plan.pdf'],
    [`${'x'.repeat(200)}.pdf`, `${'x'.repeat(146)}.pdf`],
    [`${'x'.repeat(145)}🙂.pdf`, `${'x'.repeat(145)}.pdf`],
    ['x'.repeat(151), 'x'.repeat(150)],
    [`a.${'x'.repeat(200)}`, `a.${'x'.repeat(148)}`],
    ['a/b\\c\u202e.pdf', 'a_b_c_.pdf'],
    [' ', '_'],
  ])('of %j is %j', (name, stored) => {
    expect(storedName(name)).toBe(stored);
  });

  it('is accepted by the service, whatever the file is called', () => {
    const isAccepted = (name: string) => {
      const stored = storedName(name);
      // A lone surrogate cannot be part of an address.
      return fileName.safeParse(stored).data === stored && stored.isWellFormed();
    };
    const characters = [
      'x',
      '.',
      ' ',
      '/',
      '\\',
      '\u0007',
      '\u2028',
      '\u202e',
      '\u2066',
      'é',
      '🙂',
      '\ud83d',
      '\ude42',
    ];
    const unit = fc.constantFrom(...characters);
    const long = fc.array(unit, { minLength: 140, maxLength: 170 });
    fc.assert(fc.property(fc.oneof(long, fc.array(unit)), (parts) => isAccepted(parts.join(''))));
    expect(['.', '..', ''].every(isAccepted)).toBe(true);
  });
});

it('the paths of a list follow its items after one was removed, and nothing is left of that one', () => {
  const after = (pointer: string) => pathWithoutItem(pathOf(pointer), pathOf('/a/list'), 1)?.join('/');
  expect(['/a/list/0/x', '/a/list/1/x', '/a/list/2/x', '/a/list/10/2/x'].map(after)).toEqual([
    ...['a/list/0/x', undefined, 'a/list/1/x', 'a/list/9/2/x'],
  ]);
  expect(['/a/list', '/a/other/2', '/b'].map(after)).toEqual(['a/list', 'a/other/2', 'b']);
});

it('a new draft begins with the defaults of its questions', () => {
  const dataSchema = object({
    a: { type: 'string', default: 'AB' },
    b: object({ c: { default: 1, type: 'integer' } }),
  });
  expect(defaultsOf({ dataSchema, uiSchema: undefined })).toEqual({ a: 'AB', b: { c: 1 } });
});

it('a new draft begins with the defaults of questions that other defaults show', () => {
  const names = ['third', 'second', 'first'];
  const dataSchema = object(Object.fromEntries(names.map((name) => [name, { type: 'boolean', default: true }])));
  const shownIf = (scope: string) => ({
    rule: { effect: 'SHOW', condition: { scope: `#/properties/${scope}`, schema: { const: true } } },
  });
  const elements = [control('third', shownIf('second')), control('second', shownIf('first')), control('first')];
  expect(defaultsOf({ dataSchema, uiSchema: { type: 'VerticalLayout', elements } })).toEqual({
    first: true,
    second: true,
    third: true,
  });
});

it.each<[JsonObject, unknown]>([
  [{ type: 'string' }, ''],
  [{ type: 'string', default: 'AB' }, 'AB'],
  [object({ a: { type: 'string' } }), {}],
  [
    object({ a: { type: 'string', default: 'AB' }, b: object({ c: { type: 'integer', default: 1 } }) }),
    { a: 'AB', b: { c: 1 } },
  ],
  [
    object({ a: { type: 'string', default: 'AB' }, b: { type: 'string' } }, { default: { b: 'x' } }),
    { a: 'AB', b: 'x' },
  ],
])('a new item of a list with the schema %j is %j', (items, expected) => {
  const [list] = fieldsFor(object({ list: { type: 'array', items } }));
  if (!list) throw new Error('The form has no list.');
  expect(newItem(list, 1)).toEqual(expected);
});

it('addresses name tenant, definition, form and page', () => {
  expect(addressOf('/apply/demo/a%20b')).toEqual({ tenant: 'demo', definition: 'a b' });
  expect(addressOf(pathnameOf({ tenant: 'é/b', definition: 'a b' }))).toEqual({ tenant: 'é/b', definition: 'a b' });
  expect(['/apply', '/apply/demo', '/apply/%E0/x'].map(addressOf)).toEqual([undefined, undefined, undefined]);
  expect(fragmentOf('#form=1&page=2')).toEqual({ form: '1', page: 2 });
  expect(fragmentOf('#page=0')).toEqual({ form: undefined, page: undefined });
  expect(hashOf({ form: 'a', page: 'check' })).toBe('#form=a&page=check');
});
