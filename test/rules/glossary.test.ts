// Tests that documents and comments use the terms of docs/glossary.md, not the terms that it replaces, and British
// spelling.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commentsOf, commentsOfCode, findReplacedTerms, parseGlossary, spellingRows } from './glossary.ts';
import { listFiles } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/glossary.md'), 'utf8');
const glossary = parseGlossary(page);

// Decision records use the terms of their time, and the specifications have their own terms. The lists of mutations and
// of pictures contain names of code and texts of pages.
const exempt = /^docs\/(?:glossary|specification.*|mutation|screens\/README)\.md$|^docs\/decisions\//;

const documents = [
  { path: 'README.md', text: readFileSync(join(root, 'README.md'), 'utf8') },
  ...listFiles(root, ['docs', 'charts'], '.md'),
].filter(({ path }) => !exempt.test(path));

const chartComments = ['.yaml', '.tpl']
  .flatMap((ending) => listFiles(root, ['charts'], ending))
  .map(({ path, text }) => ({ path, text: commentsOf(text) }));

const codeComments = ['.ts', '.tsx']
  .flatMap((ending) => listFiles(root, ['src', 'reconciler', 'dev', 'web', 'test'], ending))
  .map(({ path, text }) => ({ path, text: commentsOfCode(text) }));

describe('docs/glossary.md', () => {
  it('gives each term a meaning in full sentences', () => {
    expect(glossary.length).toBeGreaterThan(30);
    for (const { term, meaning } of glossary) expect(meaning, term).toMatch(/^[A-Z].*\.$/);
  });

  it('replaces no term that it recommends', () => {
    const used = glossary.flatMap(({ term }) => term.split(', '));
    expect(glossary.flatMap(({ always }) => always).filter((term) => used.includes(term))).toEqual([]);
  });
});

describe('documents and comments', () => {
  it('contain no replaced term and no American spelling', () => {
    const checked = [...documents, ...chartComments, ...codeComments];
    expect(checked.length).toBeGreaterThan(1_000);
    const findings = checked.flatMap(({ path, text }) =>
      findReplacedTerms(text, [...glossary, ...spellingRows]).map(
        ({ line, found, instead }) => `${path}:${line}: ${found} → ${instead}`,
      ),
    );
    expect(findings).toEqual([]);
  });
});

describe('the check', () => {
  const sample = parseGlossary(
    [
      '| term | meaning | replaces, by context | replaces, always |',
      '| --- | --- | --- | --- |',
      '| identity provider | Signs people in. | | access service |',
      '| lease | A claim that expires. | turn | turn of the reconciler |',
    ].join('\n'),
  );
  const found = (text: string) => findReplacedTerms(text, sample).map(({ line, found }) => `${line}: ${found}`);

  it('finds a replaced term in any case, in the plural and across lines, and suggests the right term', () => {
    expect(found('Ok.\nAccess services fail. The access\nservice answers.')).toEqual([
      '2: Access services',
      '2: access service',
    ]);
    expect(findReplacedTerms('the access service', sample)).toMatchObject([{ instead: 'identity provider' }]);
  });

  it('allows fixed names, quotations, parts of longer words and ordinary words', () => {
    const text = 'ACCESS_SERVICE_URL, "access\nservice", `access service`, access-service, access serviceable, a turn';
    expect(found(text)).toEqual([]);
    expect(found('"access\nservice" access service')).toEqual(['2: access service']);
  });

  it('finds American spelling in the comments of code, and not in the code itself', () => {
    const code = "const color = 'gray'; // color\n/** The color\n * of `color`. */\n  // Colors.\n/* Colour */";
    expect(findReplacedTerms(commentsOfCode(code), spellingRows).map(({ line }) => line)).toEqual([2, 4]);
  });

  it('reads only the comments of YAML files and templates', () => {
    const yaml = 'a: access service\n# the access\n# service\nb: "#1" # An access service.';
    expect(found(commentsOf(yaml))).toEqual(['2: access service', '4: access service']);
    expect(found(commentsOf('x\n{{- /* The turn of\nthe reconciler */ -}}\ny: access service'))).toEqual([
      '2: turn of the reconciler',
    ]);
  });

  it('rejects a table with other columns', () => {
    expect(() => parseGlossary('| term | meaning |\n| --- | --- |\n| a | b |')).toThrow('2 columns');
  });
});
