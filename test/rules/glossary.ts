// Finds replaced terms of docs/glossary.md in prose: documents, and the comments of the chart. Only terms in the column
// "replaces, always" count. The terms in the other column are ordinary words, which a reviewer must judge.
const columns = ['term', 'meaning', 'replaces, by context', 'replaces, always'];

/** A term of the glossary with the words that it replaces. */
export interface GlossaryRow {
  term: string;
  meaning: string;
  byContext: string[];
  always: string[];
}

export interface ReplacedTerm {
  line: number;
  found: string;
  /** The term to use. */
  instead: string;
}

/** American spellings, each after the British one that our prose uses. */
const spellings = [
  ['behaviour', 'behavior'],
  ['cancelled', 'canceled'],
  ['catalogue', 'catalog'],
  ['colour', 'color'],
  ['defence', 'defense'],
  ['initialise', 'initialize'],
  ['labelled', 'labeled'],
  ['neighbour', 'neighbor'],
  ['neighbouring', 'neighboring'],
  ['normalisation', 'normalization'],
  ['normalise', 'normalize'],
  ['normalised', 'normalized'],
  ['organisation', 'organization'],
  ['recognise', 'recognize'],
  ['recognised', 'recognized'],
  ['serialise', 'serialize'],
  ['summarise', 'summarize'],
];

/** The spellings as rows of the glossary. */
export const spellingRows: GlossaryRow[] = spellings.map(([term = '', american = '']) => ({
  ...{ term, meaning: '', byContext: [], always: [american] },
}));

/** Returns the rows of all tables of the glossary. Throws if a table has other columns. */
export function parseGlossary(page: string): GlossaryRow[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.startsWith('| ---'))
    .map(cells)
    .filter((row) => {
      if (row.length !== columns.length)
        throw new Error(`A glossary row has ${row.length} columns: ${row.join(' | ')}`);
      return row.join() !== columns.join();
    })
    .map(([term = '', meaning = '', byContext = '', always = '']) => ({
      term,
      meaning,
      byContext: list(byContext),
      always: list(always),
    }));
}

/**
 * Returns every use of a term that is always replaced, in upper or lower case, singular or plural, and across line
 * breaks.
 */
export function findReplacedTerms(prose: string, glossary: GlossaryRow[]): ReplacedTerm[] {
  const text = withoutMentions(prose);
  return glossary
    .flatMap(({ term, always }) =>
      always.flatMap((replaced) =>
        [...text.matchAll(pattern(replaced))].map(({ index, 0: found }) => ({
          line: text.slice(0, index).split('\n').length,
          found: found.replace(/\s+/g, ' '),
          instead: term,
        })),
      ),
    )
    .sort((a, b) => a.line - b.line);
}

/** Returns the comments of a TypeScript file that have lines of their own, on these lines, without all other text. */
export function commentsOfCode(source: string): string {
  return source
    .split('\n')
    .map((line) => /^\s*(?:\/\/|\/?\*+\/?)\s?(.*)$/.exec(line)?.[1] ?? '')
    .join('\n');
}

/** Returns the comments of a YAML file or Helm template, on their lines, and removes all other text. */
export function commentsOf(source: string): string {
  const withoutTemplateComments = source.replace(/\{\{-?\s*\/\*([\s\S]*?)\*\/\s*-?\}\}/g, (_, text: string) =>
    text.replace(/^/gm, '# '),
  );
  return withoutTemplateComments
    .split('\n')
    .map((line) => /(?:^|\s)#+\s?(.*)$/.exec(line)?.[1] ?? '')
    .join('\n');
}

function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function list(cell: string): string[] {
  return cell
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '');
}

// Replaces text in quotation marks or code spans with blanks, because it names a term instead of using it. Keeps the
// text's length and line breaks, so that line numbers do not change. The text may contain one line break.
function withoutMentions(text: string): string {
  const mention = /"[^"\n]*\n?[^"\n]*"|“[^”\n]*\n?[^”\n]*”|`[^`\n]*\n?[^`\n]*`/g;
  return text.replace(mention, (found) => found.replace(/[^\n]/g, ' '));
}

function pattern(term: string): RegExp {
  const words = term.split(' ').map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`(?<![\\w-])${words.join('\\s+')}s?(?![\\w-])`, 'gi');
}
