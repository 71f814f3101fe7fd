// Validates the corpus of form definitions: one file for each documented feature of the form editor, with valid and
// invalid form data. The files are plain JSON, so that other validators can run them too.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { parseDefinition } from './definition.ts';
import { createSchemaValidator } from './schema-validator.ts';

interface Example {
  feature: string;
  definition: { id: string };
  valid: object[];
  invalid: { data: object; pointers: string[] }[];
}

const folder = join(import.meta.dirname, '../../../test/fixtures/definitions');
const examples = readdirSync(folder).map(
  (name) => [name, JSON.parse(readFileSync(join(folder, name), 'utf8')) as Example] as const,
);

const parts = { metrics: createMetrics(), log: captureLog().log, clock: systemClock, urnPrefix: 'urn:example' };
// The time limits are long, because other tests may keep the machine busy.
const validator = createSchemaValidator({ ...parts, jobMs: 10_000, waitMs: 20_000 });
afterAll(() => validator.close());

describe('the corpus of definitions', () => {
  it.each(examples)('%s accepts its valid data and finds the faults of its invalid data', async (_name, example) => {
    const definition = parseDefinition(example.definition.id, example.definition);
    const validate = async (data: object) =>
      (await validator.validate({ tenantId: 'tenant', formId: 'form' }, definition, JSON.stringify(data))).errors;
    for (const data of example.valid) expect(await validate(data), JSON.stringify(data)).toEqual([]);
    for (const { data, pointers } of example.invalid) {
      const found = (await validate(data)).map(({ pointer }) => pointer);
      expect(found, JSON.stringify(data)).toEqual(expect.arrayContaining(pointers.map((pointer) => `/data${pointer}`)));
    }
  });
});
