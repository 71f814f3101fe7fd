// Validates one corpus of schemas and form data with the browser's validator and with the form service's. Both must
// find fault with the same values; if they differ, the browser's validator is wrong.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ValidateFunction } from 'ajv';
import { expect, it } from 'vitest';
import { bundledSchema } from '../../src/forms/definitions/bundled-schema.ts';
import { compileSchema, findingsOf } from '../../src/forms/definitions/json-schema.ts';
import { pointerOf } from '../../web/apply/model/json.ts';
import { createValidator, type Validator } from '../../web/apply/model/validator.ts';
import { type Example, furtherExamples } from './further-examples.ts';

const folder = join(import.meta.dirname, '../fixtures/definitions');
const corpus = readdirSync(folder).map((file): [string, Example] => {
  const { definition, valid, invalid } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  return [
    file,
    { schema: definition.dataSchema, data: [...valid, ...invalid.map(({ data }: { data: object }) => data)] },
  ];
});

function onTheServer(validate: ValidateFunction, data: unknown): string[] {
  validate(data);
  const { errors, truncated } = findingsOf(validate.errors);
  expect(truncated).toBe(false);
  return [...new Set(errors.map(({ pointer }) => pointer.replace('/data', '')))].sort();
}

function inTheBrowser(validate: Validator, data: unknown): string[] {
  const findings = validate(data);
  return [...new Set(findings.map(({ path }) => pointerOf(path)))].sort();
}

it.each([...corpus, ...Object.entries(furtherExamples)])('%s', (_name, { schema, data, comparesValidity = false }) => {
  const server = compileSchema(schema, { allErrors: true, urnPrefix: 'urn:example' });
  const browser = createValidator(bundledSchema(schema), 'urn:example');
  for (const value of data) {
    const [found, authority] = [inTheBrowser(browser, value), onTheServer(server, value)];
    if (comparesValidity)
      expect({ value, isValid: found.length === 0 }).toEqual({ value, isValid: authority.length === 0 });
    else expect({ value, found }).toEqual({ value, found: authority });
  }
});
