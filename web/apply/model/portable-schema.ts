// Rewrites data schemas for the interpreting validator, so that it finds the same errors as the form service. Draft 4
// becomes draft 7. Removes the placeholder `enum: [""]` of a choice from a register. Removes the keywords of drafts
// 2019-09 and 2020-12 from schemas of earlier drafts.
import { isObject, type JsonObject } from './json.ts';

const holdsSchema = new Set([
  ...['additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then'],
  ...['unevaluatedItems', 'unevaluatedProperties'],
]);
const holdsList = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const holdsMap = new Set([
  ...['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'],
]);
const unconditional = new Set([
  ...['$defs', 'additionalProperties', 'definitions', 'items', 'patternProperties', 'prefixItems', 'properties'],
]);
/** Keywords that came with draft 2019-09 or 2020-12. */
const laterKeywords = [
  ...['dependentRequired', 'dependentSchemas', 'unevaluatedItems', 'unevaluatedProperties', 'prefixItems'],
  ...['minContains', 'maxContains', '$recursiveRef', '$recursiveAnchor', '$anchor'],
];

interface Visited {
  schema: JsonObject;
  isUnconditional: boolean;
}

function subschemas(schema: unknown, isUnconditional = true): Visited[] {
  if (!isObject(schema)) return [];
  const inner = Object.entries(schema).flatMap(([keyword, value]) => {
    const keeps = isUnconditional && unconditional.has(keyword);
    if (Array.isArray(value)) return holdsList.has(keyword) ? value.flatMap((item) => subschemas(item, keeps)) : [];
    if (holdsSchema.has(keyword)) return subschemas(value, keeps);
    return holdsMap.has(keyword) && isObject(value)
      ? Object.values(value).flatMap((item) => subschemas(item, keeps))
      : [];
  });
  return [{ schema, isUnconditional }, ...inner];
}

export interface PortableSchema {
  schema: JsonObject | boolean;
  draft: '2019-09' | '2020-12';
}

/**
 * Returns the rewritten copy of a schema, without `$schema`. A schema that is not an object or a boolean allows
 * everything. `isCondition` is true for the condition of a rule, which contains no placeholders.
 */
export function portableSchema(given: unknown, isCondition = false): PortableSchema {
  if (!isObject(given)) return { schema: given !== false, draft: '2019-09' };
  const { $schema, ...rest } = given;
  const dialect = typeof $schema === 'string' ? $schema : '';
  const schema = structuredClone(rest);
  for (const visited of subschemas(schema, !isCondition)) rewrite(visited, dialect);
  return { schema, draft: dialect.includes('2020-12') ? '2020-12' : '2019-09' };
}

function rewrite({ schema, isUnconditional }: Visited, dialect: string): void {
  if (dialect.includes('draft-04')) migrate(schema);
  // After draft 4, `id` has no meaning, but the validator would read it as `$id`.
  delete schema.id;
  if (!/20(?:19-09|20-12)/.test(dialect)) for (const keyword of laterKeywords) delete schema[keyword];
  // In a condition, `enum: [""]` is not a placeholder: it asks whether the value is empty.
  if (isUnconditional && Array.isArray(schema.enum) && schema.enum.length === 1 && schema.enum[0] === '')
    delete schema.enum;
  if (schema.nullable === true && schema.type !== undefined) schema.type = [schema.type, 'null'].flat();
  rewritePatterns(schema);
}

/**
 * Migrates a schema from draft 4. In draft 4, `$id` is called `id`, and the exclusive bounds are flags beside `minimum`
 * and `maximum`.
 */
function migrate(schema: JsonObject): void {
  if (typeof schema.id === 'string') schema.$id = schema.id;
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[exclusive] !== 'boolean') continue;
    const isExclusive = schema[exclusive];
    delete schema[exclusive];
    if (!isExclusive || schema[bound] === undefined) continue;
    schema[exclusive] = schema[bound];
    delete schema[bound];
  }
}

function rewritePatterns(schema: JsonObject): void {
  if (typeof schema.pattern === 'string') {
    const pattern = unicodePattern(schema.pattern);
    if (pattern === undefined) delete schema.pattern;
    else schema.pattern = pattern;
  }
  if (!isObject(schema.patternProperties)) return;
  const entries = Object.entries(schema.patternProperties).map(([source, inner]) => [unicodePattern(source), inner]);
  schema.patternProperties = Object.fromEntries(entries.filter(([source]) => source !== undefined));
}

/**
 * Rewrites the older syntax of ECMAScript's Annex B, such as `\_`. The validator compiles patterns with the `u` flag,
 * which rejects that syntax. Returns undefined if the result does not compile: then only the form service checks the
 * pattern.
 */
function unicodePattern(source: string): string | undefined {
  const rewritten = source.replace(/\[(?:\\.|[^\]\\])*\]|\\./gsu, (part) =>
    part.startsWith('[') ? part.replace(/\\([^\w^$\\.*+?()[\]{}|/-])|\\(_)/gu, '$1$2') : withoutNeedlessEscape(part),
  );
  return [source, rewritten].find(compiles);
}

function withoutNeedlessEscape(escaped: string): string {
  const character = escaped.slice(1);
  return /^[\w^$\\.*+?()[\]{}|/]$/u.test(character) && character !== '_' ? escaped : character;
}

function compiles(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
