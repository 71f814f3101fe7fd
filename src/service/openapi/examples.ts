// Generates examples for the page /docs: values from JSON Schemas, and the curl command of a call. Pure functions only.
import { isObject } from '../json-value.ts';
import type { JsonSchema } from './schema-markup.ts';

type Schemas = Record<string, JsonSchema>;

const formats: Record<string, unknown> = {
  uuid: '01920d4e-7b5a-7c3e-9f5e-7c1e3f0c8e2d',
  'date-time': '2026-11-23T08:30:00.000Z',
  date: '2026-11-23',
  email: 'ana@example.org',
  uri: 'https://example.org/',
};

/** Maximum depth of objects in an example. The limit is needed because a schema can contain itself. */
const deepest = 5;

/**
 * Returns an example of the schema. If the schema has a pattern but no example, the value need not match the pattern.
 */
export function exampleOf(schema: JsonSchema, schemas: Schemas, depth = 0): unknown {
  if (typeof schema === 'boolean' || depth > deepest) return {};
  const { $ref, examples, const: constant, default: absent, enum: choices } = schema;
  if ($ref !== undefined) return exampleOf(schemas[$ref.split('/').at(-1) ?? ''] ?? true, schemas, depth);
  const given = [examples?.[0], constant, absent, choices?.[0]].find((value) => value !== undefined);
  if (given !== undefined) return given;
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives?.[0] !== undefined) return exampleOf(alternatives[0], schemas, depth);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => exampleOf(one, schemas, depth)));
  if (schema.items !== undefined) return [exampleOf(schema.items, schemas, depth + 1)];
  if (schema.properties)
    return Object.fromEntries(
      Object.entries(schema.properties).map(([name, member]) => [name, exampleOf(member, schemas, depth + 1)]),
    );
  return exampleOfType(schema);
}

function exampleOfType(schema: Exclude<JsonSchema, boolean>): unknown {
  const [type] = [schema.type].flat();
  if (type === 'integer' || type === 'number') return Math.max(1, schema.minimum ?? 1);
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  if (type === 'null') return null;
  if (type === 'string') return formats[schema.format ?? ''] ?? 'text';
  return {};
}

export interface CurlCall {
  method: string;
  /** The path, with parameter names in braces. */
  path: string;
  parameters: { name: string; in: string; required?: boolean; schema?: JsonSchema }[];
  /** Names of the credentials that the call accepts. The command uses the first. */
  credentials: readonly string[];
  /** True if the response sets a cookie that later calls need. */
  setsCookie: boolean;
  body?: { type: string; schema?: JsonSchema };
}

/**
 * Returns the curl command of a call. `$BASE`, `$TOKEN`, the parameters of the path, and required headers without an
 * example are shell variables. curl keeps cookies in a file named `cookies`, and reads files from one named `file`.
 */
export function curlOf(call: CurlCall, schemas: Schemas): string {
  const { method, path, parameters, credentials, setsCookie, body } = call;
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name, schema = true }) => `${name}=${encodeURIComponent(String(exampleOf(schema, schemas)))}`);
  const url = path.replace(/\{(\w+)\}/g, (_all, name: string) => `$${shellName(name)}`);
  const needsCookie = credentials[0] === 'session' || credentials[0] === 'form';
  const options = [
    credentials[0] === 'bearer' && '-H "Authorization: Bearer $TOKEN"',
    (needsCookie || setsCookie) && '-b cookies',
    setsCookie && '-c cookies',
    ...parameters.filter((parameter) => parameter.in === 'header' && parameter.required).map(headerOption),
    body && `-H 'Content-Type: ${body.type}'`,
    body && bodyOption(body, schemas),
  ].filter((option) => typeof option === 'string');
  // With `-X HEAD`, curl would wait for a body.
  const verb = { GET: '', HEAD: '--head ' }[method] ?? `-X ${method} `;
  return [`curl ${verb}"$BASE${url}${query.length > 0 ? `?${query.join('&')}` : ''}"`, ...options].join(' \\\n  ');
}

function headerOption({ name, schema }: CurlCall['parameters'][number]): string {
  const example = typeof schema === 'object' ? schema.examples?.[0] : undefined;
  return `-H ${example === undefined ? `"${name}: $${shellName(name)}"` : quoted(`${name}: ${example}`)}`;
}

function bodyOption({ type, schema = true }: NonNullable<CurlCall['body']>, schemas: Schemas): string {
  if (typeof schema === 'object' && schema.format === 'binary') return '--data-binary @file';
  return `-d ${quoted(bodyText(type, exampleOf(schema, schemas)))}`;
}

function bodyText(type: string, value: unknown): string {
  if (/json/.test(type)) return JSON.stringify(value, undefined, 2);
  return isObject(value) ? new URLSearchParams(value as Record<string, string>).toString() : String(value);
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function shellName(name: string): string {
  // The shell finds programs with its own variable PATH.
  if (name === 'path') return 'URL_PATH';
  return name
    .replace(/^X-/, '')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase();
}
