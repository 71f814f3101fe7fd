// Describes a JSON Schema in words, for the page /docs.
import { html, joinMarkup, type Markup, prose } from './html.ts';

export type JsonSchema = boolean | SchemaObject;

interface SchemaObject {
  $ref?: string;
  type?: string | string[];
  format?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
}

export function schemaMarkup(schema: JsonSchema): Markup {
  if (typeof schema === 'boolean') return html`${schema ? 'anything' : 'nothing'}`;
  if (schema.$ref !== undefined) return reference(schema.$ref);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return joinMarkup(choices.map(schemaMarkup), ' or ');
  if (schema.allOf) return joinMarkup(schema.allOf.map(schemaMarkup), ' and ');
  if (schema.items !== undefined) return html`list${countOf(schema)} of ${schemaMarkup(schema.items)}`;
  if (schema.properties) return objectMarkup(schema, schema.properties);
  if (typeof schema.additionalProperties === 'object')
    return html`object whose members are ${schemaMarkup(schema.additionalProperties)}`;
  return html`${plainText(schema)}`;
}

/** Describes the pattern and the default of a value. `schemaMarkup` describes its type, format and range. */
export function constraintsOf(schema: JsonSchema): string {
  if (typeof schema === 'boolean') return '';
  const { format, pattern, default: absent } = schema;
  // Omits the pattern if there is a format, because the format implies it.
  return [
    pattern !== undefined && format === undefined && `pattern ${pattern}`,
    absent !== undefined && `default ${JSON.stringify(absent)}`,
  ]
    .filter((text) => text !== false)
    .join(', ');
}

function reference(ref: string): Markup {
  const name = ref.split('/').at(-1) ?? ref;
  return html`<a href="#type-${name}">${name}</a>`;
}

function objectMarkup(schema: SchemaObject, properties: Record<string, JsonSchema>): Markup {
  const entries = Object.entries(properties);
  if (entries.length === 0) return html`object`;
  const required = new Set(schema.required);
  return html`object<ul class="members">${entries.map(([name, member]) => memberItem(name, member, required.has(name)))}</ul>`;
}

function memberItem(name: string, schema: JsonSchema, required: boolean): Markup {
  const description = typeof schema === 'object' ? schema.description : undefined;
  const constraints = constraintsOf(schema);
  return html`<li><code>${name}</code>${required ? '' : ' (optional)'}: ${schemaMarkup(schema)}${constraints && `, ${constraints}`}
${description !== undefined && html`<br><span class="quiet">${prose(description)}</span>`}</li>`;
}

function plainText(schema: SchemaObject): string {
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(', ')}`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const types = [schema.type ?? 'anything'].flat().join(' or ');
  return `${types}${schema.format === undefined ? '' : ` (${schema.format})`}${rangeOf(schema)}`;
}

function rangeOf({ minLength, maxLength, minimum, maximum }: SchemaObject): string {
  const range = between(minLength, maxLength, ' characters') || between(minimum, maximum, '');
  return range && `, ${range}`;
}

function countOf({ minItems, maxItems }: SchemaObject): string {
  const count = between(minItems, maxItems, '');
  return count && ` (${count})`;
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  // Omits the default bounds of an integer, which are the largest integers that a double holds exactly.
  const from = least === undefined || Math.abs(least) === Number.MAX_SAFE_INTEGER ? undefined : least;
  const to = most === undefined || Math.abs(most) === Number.MAX_SAFE_INTEGER ? undefined : most;
  if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`;
  if (from !== undefined) return `at least ${from}${unit}`;
  return to === undefined ? '' : `at most ${to}${unit}`;
}
