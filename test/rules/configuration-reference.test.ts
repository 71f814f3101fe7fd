// Tests that docs/configuration.md agrees with the schemas, and that the schemas describe every setting.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';

import { csv, flag, integer, secret } from '../../src/service/operations/config.ts';
import { isoDuration } from '../../src/service/operations/duration.ts';
import { configurationReference, processes, settingsOf } from './configuration-reference.ts';
import { listFiles } from './source-files.ts';

const root = join(import.meta.dirname, '../..');

test('every setting of every process has a description', () => {
  for (const one of processes) {
    const settings = settingsOf(one);
    expect(settings.length).toBeGreaterThan(10);
    expect(settings.filter(({ meaning }) => !meaning).map(({ name }) => `${one.title}: ${name}`)).toEqual([]);
  }
});

test('docs/configuration.md agrees with the schemas (npm run docs updates it)', () => {
  expect(readFileSync(join(root, 'docs/configuration.md'), 'utf8')).toBe(configurationReference(processes));
});

test('code reads every setting that a schema has', () => {
  const sources = listFiles(root, ['src', 'reconciler'], '.ts')
    .filter(({ path }) => !path.endsWith('.test.ts'))
    .map(({ text }) => text)
    .join('\n');
  const names = new Set(processes.flatMap(({ schema }) => Object.keys(schema.shape)));
  const unread = [...names].filter((name) => {
    const mentions = sources.match(new RegExp(`\\b${name}\\b`, 'g')) ?? [];
    // OTEL_EXPORTER_OTLP_PROTOCOL has only one valid value, which the schema checks, so no code reads this setting.
    return mentions.length <= 1 && name !== 'OTEL_EXPORTER_OTLP_PROTOCOL';
  });
  expect(unread).toEqual([]);
});

test('defaults are shown in the syntax of the environment', () => {
  const schema = z.object({
    NEEDED: secret(8),
    TIME: isoDuration('PT10M').describe('A time'),
    COUNT: integer(10),
    LIST: csv(),
    SWITCH: flag(true),
    LEVEL: z.enum(['low', 'high']).default('low').describe('How much'),
    EXTRA: z.string().optional().describe('One | two'),
  });
  expect(settingsOf({ schema })).toEqual([
    { name: 'NEEDED', default: '**required**', meaning: undefined },
    { name: 'TIME', default: '`PT10M`', meaning: 'A time' },
    { name: 'COUNT', default: '`10`', meaning: undefined },
    { name: 'LIST', default: 'none', meaning: undefined },
    { name: 'SWITCH', default: '`true`', meaning: undefined },
    { name: 'LEVEL', default: '`low`', meaning: 'How much (low, high)' },
    { name: 'EXTRA', default: 'none', meaning: 'One | two' },
  ]);
  expect(configurationReference([{ title: 'One', part: 'forms', about: 'About.', schema }])).toContain(
    '| `EXTRA` | `forms.env` | none | One \\| two |',
  );
});
