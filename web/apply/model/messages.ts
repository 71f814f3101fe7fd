// Chooses the message that people read about an invalid value. The summary and the field show the same message.
import type { Texts } from '../texts/texts.ts';
import type { Field } from './fields.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Finding } from './validator.ts';

const examples: Record<string, string> = {
  email: 'name@example.com',
  phone: '780 555 0100',
  'phone-number': '780 555 0100',
  sin: '046 454 286',
  postalCode: 'T5K 2M5',
  'postal-code': 'T5K 2M5',
  time: '14:30',
  uri: 'https://example.com',
};

/** Returns the message for a finding. `field` is the field that shows the value; undefined for the form as a whole. */
export function messageFor(finding: Finding, field: Field | undefined, texts: Texts): string {
  return ofTheDefinition(finding, field) ?? (field ? messageOf(finding, field, texts) : texts.errors.form);
}

/** Returns the definition's own message, if it has one for the schema, the keyword or the missing property. */
function ofTheDefinition({ keyword, schema, path }: Finding, field: Field | undefined): string | undefined {
  for (const { errorMessage } of [schema, field?.place.schema ?? {}]) {
    if (typeof errorMessage === 'string' && keyword !== 'required') return errorMessage;
    if (!isObject(errorMessage)) continue;
    const own = errorMessage[keyword];
    const found = isObject(own) ? own[path.at(-1) ?? ''] : own;
    if (typeof found === 'string') return found;
  }
  return undefined;
}

function messageOf({ keyword, schema }: Finding, field: Field, { errors }: Texts): string {
  const { label } = field;
  const bound = boundOf(schema, keyword);
  switch (keyword) {
    case 'required':
      return missing(field, errors);
    case 'type':
      return typeMessage(field, errors);
    case 'minLength':
      return bound < 2 ? missing(field, errors) : errors.tooShort(label, bound);
    case 'maxLength':
      return errors.tooLong(label, bound);
    case 'pattern':
      return errorLike(field, errors);
    case 'format':
      return formatMessage(schema, field, errors);
    case 'enum':
    case 'const':
    case 'oneOf':
    case 'anyOf':
      return choiceMessage(field, errors);
    default:
      return boundMessage(keyword, label, bound, errors);
  }
}

type Errors = Texts['errors'];

function missing({ kind, label, place }: Field, errors: Errors): string {
  if (kind === 'checkbox' && place.schema.const === true) return errors.notTicked(label);
  if (kind === 'file') return errors.noFile(label);
  return isChoice(kind) ? errors.notChosen(label) : errors.missing(label);
}

const isChoice = (kind: Field['kind']) => ['checkbox', 'yes-no', 'choice', 'checkboxes'].includes(kind);

const isLine = (kind: Field['kind']) => ['text', 'textarea', 'date', 'time', 'date-time'].includes(kind);

function choiceMessage(field: Field, errors: Errors): string {
  return isChoice(field.kind) ? missing(field, errors) : errors.other(field.label);
}

function typeMessage(field: Field, errors: Errors): string {
  if (field.kind === 'integer') return errors.integer(field.label);
  if (field.kind === 'number') return errors.number(field.label);
  // A text input stores only texts. A value of another type therefore comes from a list item that was emptied.
  return isLine(field.kind) ? missing(field, errors) : choiceMessage(field, errors);
}

function formatMessage({ format }: JsonObject, field: Field, errors: Errors): string {
  if (field.kind === 'date' || format === 'date') return errors.date(field.label);
  return errorLike(field, errors, typeof format === 'string' ? examples[format] : undefined);
}

/** Names an example of the definition, or else the given one. */
function errorLike({ label, place }: Field, errors: Errors, example?: string): string {
  const given = Array.isArray(place.schema.examples) ? place.schema.examples[0] : undefined;
  const shown = typeof given === 'string' ? given : example;
  return shown === undefined ? errors.pattern(label) : errors.like(label, shown);
}

function boundMessage(keyword: string, label: string, bound: number, errors: Errors): string {
  const byKeyword: Record<string, (label: string, bound: number) => string> = {
    minimum: errors.atLeast,
    maximum: errors.atMost,
    exclusiveMinimum: errors.moreThan,
    exclusiveMaximum: errors.lessThan,
    multipleOf: errors.step,
    minItems: errors.tooFew,
    contains: (text) => errors.tooFew(text, 1),
    maxItems: errors.tooMany,
    uniqueItems: errors.twice,
    false: errors.unexpected,
  };
  return (byKeyword[keyword] ?? errors.other)(label, bound);
}

function boundOf(schema: JsonObject, keyword: string): number {
  const value = schema[keyword];
  return typeof value === 'number' ? value : 1;
}
