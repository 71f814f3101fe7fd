// Tests that skaffold.yaml is valid, and names only existing files and values.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const schema = JSON.parse(read('test/fixtures/schemas/skaffold-v4beta13.json'));
const ajv = new Ajv({ strict: false, allErrors: true });
const text = read('skaffold.yaml');

const shape = z.object({
  build: z.object({ artifacts: z.array(z.object({ docker: z.object({ dockerfile: z.string() }) })) }),
  deploy: z.object({
    helm: z.object({
      releases: z.array(
        z.object({
          chartPath: z.string(),
          valuesFiles: z.array(z.string()),
          setValueTemplates: z.record(z.string(), z.string()),
        }),
      ),
    }),
  }),
  profiles: z.array(
    z.object({ name: z.string(), patches: z.array(z.object({ path: z.string(), value: z.unknown().optional() })) }),
  ),
});

function problems(document: unknown): string[] {
  const validate = ajv.compile(schema);
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Merges values as Helm does: later values win, and objects are merged. */
function merge(layers: unknown[]): unknown {
  return layers.reduce((below, above) => {
    if (![below, above].every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))) return above;
    const members = { ...Object(below) };
    for (const [key, value] of Object.entries(Object(above)))
      members[key] = key in members ? merge([members[key], value]) : value;
    return members;
  });
}

describe('skaffold.yaml', () => {
  it('is valid by the schema of its apiVersion, and a misspelt key is not', () => {
    expect(problems(parse(text))).toEqual([]);
    expect(problems(parse(text.replace('artifacts:', 'artefacts:')))).not.toEqual([]);
    expect(problems(parse(text.replace('chartPath:', 'chart:')))).not.toEqual([]);
  });

  it('names existing files and an existing stage of the Dockerfile', () => {
    const { build, deploy, profiles } = shape.parse(parse(text));
    const files = [
      ...build.artifacts.map(({ docker }) => docker.dockerfile),
      ...deploy.helm.releases.flatMap(({ chartPath, valuesFiles }) => [chartPath, ...valuesFiles]),
    ];
    expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const target = profiles.flatMap(({ patches }) => patches).find(({ path }) => path.endsWith('/target'))?.value;
    expect(read('Dockerfile')).toContain(` AS ${target}\n`);
  });

  it('sets existing values of the chart', () => {
    const { deploy, profiles } = shape.parse(parse(text));
    const patched = profiles.flatMap(({ patches }) => patches).filter(({ path }) => path.endsWith('/setValues'));
    const names = [
      ...deploy.helm.releases.flatMap(({ setValueTemplates }) => Object.keys(setValueTemplates)),
      ...patched.flatMap(({ value }) => Object.keys(Object(value))),
    ];
    const values: unknown = parse(read('charts/formgate/values.yaml'));
    const isThere = (name: string) =>
      name
        .split('.')
        .reduce<unknown>(
          (inner, key) => (inner === undefined ? undefined : Reflect.get(Object(inner), key)),
          values,
        ) !== undefined;
    expect(names.length).toBeGreaterThan(4);
    expect(names.filter((name) => !isThere(name))).toEqual([]);
  });

  it('sets valid values', () => {
    const { deploy, profiles } = shape.parse(parse(text));
    const built = { repository: 'registry/formgate', tag: 'v1', digest: `sha256:${'0'.repeat(64)}` };
    const patched = profiles.flatMap(({ patches }) => patches).filter(({ path }) => path.endsWith('/setValues'));
    const set = Object.entries(Object.assign({}, ...patched.map(({ value }) => value)) as Record<string, unknown>);
    const layers = ['charts/formgate/values.yaml', ...deploy.helm.releases.flatMap(({ valuesFiles }) => valuesFiles)];
    const values = merge([
      ...layers.map((path): unknown => parse(read(path))),
      { image: built },
      ...set.map(([name, value]) => name.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)),
    ]);
    const validate = new Ajv({ strict: false, allErrors: true }).compile(
      JSON.parse(read('charts/formgate/values.schema.json')),
    );
    validate(values);
    expect(validate.errors ?? []).toEqual([]);
  });
});
