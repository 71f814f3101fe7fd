// Tests that every alert has a runbook, and that every runbook names only metrics, log messages and alerts that exist.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listFiles } from '../rules/source-files.ts';
import { alertNames, ruleSettings, rules, runbookOf } from './rules.ts';
import { blocksOf, readRunbook, runbookFolder, runbookNames } from './runbook-blocks.ts';

const root = join(import.meta.dirname, '../..');
const names = runbookNames();
const pages = names.map((name) => ({ name, text: readRunbook(name) }));
const source = listFiles(root, ['src', 'reconciler'], '.ts')
  .filter(({ path }) => !path.endsWith('.test.ts'))
  .map(({ text }) => text)
  .join('\n');

test('every alert has a runbook, and every runbook belongs to an alert', () => {
  expect(names).toEqual(
    alertNames()
      .map((alert) => `${runbookOf(alert)}.md`)
      .sort(),
  );
  const index = readRunbook('README.md');
  for (const alert of alertNames()) expect(index).toContain(`[${alert}](${runbookOf(alert)}.md)`);
});

test('the annotation runbook_url of every alert leads to its runbook', () => {
  const { pathname } = new URL(ruleSettings.runbookUrl);
  const inRepository = pathname.split('/main/')[1] ?? '';
  expect(join(root, inRepository)).toBe(runbookFolder);
  for (const { alert, annotations } of rules().filter((rule) => rule.alert)) {
    const url = annotations?.runbook_url ?? '';
    expect(url).toBe(`${ruleSettings.runbookUrl}/${runbookOf(alert ?? '')}.md`);
    expect(existsSync(join(runbookFolder, url.split('/').at(-1) ?? ''))).toBe(true);
  }
});

test.each(pages)('$name has the sections of a runbook, and its alert as the title', ({ name, text }) => {
  const title = /^# (Formgate\w+)\n/.exec(text)?.[1] ?? '';
  expect(`${runbookOf(title)}.md`).toBe(name);
  const sections = text.split(/^## /m).slice(1);
  expect(sections.map((section) => section.split('\n')[0])).toEqual([
    ...['Meaning', 'Impact', 'Diagnosis', 'Fix', 'Verification'],
  ]);
  for (const section of sections) expect(section.split('\n').slice(1).join('').trim().length).toBeGreaterThan(10);
});

test('all runbooks begin with the same variables and functions', () => {
  expect(new Set(pages.map(({ text }) => blocksOf(text)[0])).size).toBe(1);
  expect(blocksOf(pages[0]?.text ?? '')[0]).toMatch(/^NAMESPACE=formgate RELEASE=formgate\n/);
});

test.each(pages)('the commands of $name are valid, and use no variable but those', async ({ text }) => {
  const commands = blocksOf(text).join('\n');
  const { code, stderr } = await check(commands);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  // Ignores text in single quotes: it is JavaScript that a pod runs.
  const used = [...commands.replace(/'[^']*'/g, '').matchAll(/\$(\w+)/g)].map(([, name = '']) => name);
  expect(used.filter((name) => !['NAMESPACE', 'RELEASE', 'pod', '1'].includes(name))).toEqual([]);
  for (const [, component = ''] of commands.matchAll(/^(?:metrics|logs) (\S+)/gm))
    expect(['forms', 'token-handler', 'platform-server', 'reconciler']).toContain(component);
});

/** Node's own metrics, from prom-client. */
const standard = ['nodejs_eventloop_lag_p99_seconds', 'nodejs_gc_duration_seconds'];
const exists = (metric: string) =>
  [metric, metric.replace(/_(?:sum|count|bucket)$/, '')].some((name) => standard.includes(name) || isInSource(name));
/** A name that ends with an underscore is the prefix of several names. */
const isInSource = (name: string) => new RegExp(`\\b${name}${name.endsWith('_') ? '' : '\\b'}`).test(source);

test.each(pages)('every metric in $name exists', ({ text }) => {
  const named = [...text.matchAll(/\b(?:formgate|nodejs)_\w+/g)].map(([metric]) => metric);
  expect(named.filter((metric) => !exists(metric))).toEqual([]);
});

test('every metric of the rules exists', () => {
  const named = rules().flatMap(({ expr }) => [...expr.matchAll(/\b(?:formgate|nodejs)_\w+/g)].map(([name]) => name));
  expect(named.length).toBeGreaterThan(30);
  expect([...new Set(named)].filter((metric) => !exists(metric))).toEqual([]);
});

test.each(pages)('every log message in $name is one that the source logs', ({ text }) => {
  const messages = [...text.matchAll(/^logs [^|]*\| grep (?:-[cE] )?'([^']+)'/gm)].flatMap(([, found = '']) =>
    found.split('|'),
  );
  expect(messages.filter((message) => !source.includes(message.replaceAll('"', '')))).toEqual([]);
});

/** True if the source contains this text as a whole message. Messages about a dependency begin with its name. */
function isMessage(line: string): boolean {
  const [, name = '', rest = ''] = /^(Redis|the identity provider) (.*)$/.exec(line) ?? [];
  const isQuoted = (text: string) => [`'${text}'`, `"${text}"`].some((literal) => source.includes(literal));
  return isQuoted(line) || (isQuoted(name) && source.includes(`\`\${name} ${rest}\``));
}

test('every log line that a runbook tells to look for is a whole message of the source', () => {
  const quoted = pages.flatMap(({ name, text }) => {
    const prose = text.replace(/```[\s\S]*?```/g, '').replace(/\s+/g, ' ');
    return [...prose.matchAll(/\b(?:line|[Ll]ook for) `([^`]+)`/g)].map(([, line = '']) => ({ name, line }));
  });
  expect(quoted.length).toBeGreaterThan(5);
  expect(quoted.filter(({ line }) => !isMessage(line))).toEqual([]);
});

test.each(pages)('every value of the chart in $name exists', ({ text }) => {
  const values = readFileSync(join(root, 'charts/formgate/README.md'), 'utf8');
  const named = [...text.matchAll(/`(prometheusRule\.[\w.]+)`/g)].map(([, value]) => value);
  expect(named.filter((value) => !values.includes(`\`${value}`))).toEqual([]);
});

function check(commands: string): Promise<{ code: number; stderr: string }> {
  return new Promise((done) => {
    const child = execFile('bash', ['-n'], (error, _stdout, stderr) => done({ code: error ? 1 : 0, stderr }));
    child.stdin?.end(commands);
  });
}
