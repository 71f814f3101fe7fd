// Checks that the catalogue of metrics agrees with the code, with its page, and with every text that names a metric.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createCatalogue } from '../../dev/monitoring/catalogue.ts';
import { metricsPage } from '../../dev/monitoring/metrics-page.ts';
import { questions } from '../../dev/monitoring/questions.ts';
import { listFiles } from '../rules/source-files.ts';
import { seriesOf } from './exposed-metrics.ts';
import { rules } from './rules.ts';

const root = join(import.meta.dirname, '../..');
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const catalogue = createCatalogue();
const own = catalogue.filter(({ isDefault }) => !isDefault);

it('docs/metrics.md is up to date: npm run docs writes it', () => {
  expect(textOf('docs/metrics.md')).toBe(metricsPage(catalogue));
});

it('the page shows every metric with its question', () => {
  const page = textOf('docs/metrics.md');
  for (const { name } of catalogue) expect(page).toContain(`\`${name}\``);
  for (const { question } of catalogue) expect(question).toMatch(/^[A-Z].*\?$/);
});

it('every question belongs to a metric', () => {
  expect(Object.keys(questions).filter((name) => !catalogue.some((entry) => entry.name === name))).toEqual([]);
});

it('names follow the conventions of Prometheus', () => {
  for (const { name, type, labels, help } of own) {
    expect(name, name).toMatch(/^formgate_[a-z0-9_]+$/);
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    expect(name, name).not.toMatch(/(milliseconds|minutes|hours|kilobytes|percent)/);
    expect(help, name).toMatch(/^[A-Z0-9][^"\n]*[^.]$/);
    // The Prometheus Operator sets the first six of these labels on every series. Histograms and summaries use `le` and
    // `quantile`.
    const taken = ['namespace', 'pod', 'job', 'instance', 'container', 'endpoint', 'le', 'quantile'];
    expect(
      labels.filter((label) => taken.includes(label)),
      name,
    ).toEqual([]);
    expect(
      labels.filter((label) => /tenant|path|url|client|user|subject|form_?id|address/i.test(label)),
      name,
    ).toEqual([]);
  }
});

it('a metric has the same type, labels, help and question in every process', () => {
  const facts = new Map<string, Set<string>>();
  for (const { process, ...entry } of catalogue)
    facts.set(entry.name, (facts.get(entry.name) ?? new Set()).add(JSON.stringify(entry)));
  expect([...facts].filter(([, variants]) => variants.size > 1)).toEqual([]);
});

it('metrics are created only in files named metrics.ts or *-metrics.ts', () => {
  const sources = listFiles(root, ['src', 'reconciler', 'dev'], '.ts').filter(({ path }) => !path.endsWith('.test.ts'));
  const creating = sources.filter(({ text }) => /\bnew (prom\.)?(Counter|Gauge|Histogram|Summary)\b/.test(text));
  expect(creating.length).toBeGreaterThan(15);
  expect(creating.map(({ path }) => path).filter((path) => !/(^|[/-])metrics\.ts$/.test(path))).toEqual([]);
});

it('every metric that documents, the chart, its rules or tests name exists', () => {
  const known = new Set([...catalogue.flatMap(seriesOf), ...rules().flatMap(({ record }) => record ?? [])]);
  // In OpenMetrics, the TYPE line of a counter omits the suffix _total.
  for (const { name } of catalogue) known.add(name.replace(/_total$/, ''));
  // These names are not metrics: the session cookie, and a misspelt name in a test that expects an error for it.
  for (const name of ['formgate_session', 'formgate_typo_total']) known.add(name);
  // A command may name only a prefix, to search for all metrics that begin with it.
  const isKnown = (name: string) => known.has(name) || [...known].some((one) => one.startsWith(`${name}_`));
  // Matches names that begin with formgate_, and names that end like a metric, in _total or _seconds.
  const named = /(?<![\w/.@:$-])(?:formgate_[a-z0-9_]+[a-z0-9]|[a-z][a-z0-9_]*_(?:total|seconds))(?![\w*(/@:-])/g;
  const texts = [
    ...listFiles(root, ['docs', 'charts'], ''),
    ...listFiles(root, ['src', 'reconciler', 'dev', 'test'], '.test.ts'),
  ];
  const missing = texts.flatMap(({ path, text }) =>
    [...text.matchAll(named)].filter(([name]) => !isKnown(name)).map(([name]) => `${path}: ${name}`),
  );
  expect(texts.length).toBeGreaterThan(300);
  expect([...new Set(missing)]).toEqual([]);
});
