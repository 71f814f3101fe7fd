// Reads docs/specification.md and docs/specification-token-handler.md: each row of their tables is a rule, with the tests
// that prove it.

export interface Rule {
  id: string;
  /** The tests that it names, each as `file › describe › … › title`. */
  tests: string[];
  /** What it says is built later. */
  isLater: boolean;
}

/** The rules of a page, in its order. A row of a table that is no head and no rule is an error. */
export function rulesOf(markdown: string): Rule[] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\| (?:rule|---) \|/.test(line))
    .map(toRule);
}

function toRule(line: string): Rule {
  const cells = line.split(/(?<!\\)\|/).slice(1, -1);
  const [id = '', says = '', proof = ''] = cells.map((cell) => cell.trim());
  const items = proof.split('<br>');
  const named = items.filter((item) => /^`[^`]+`$/.test(item));
  const later = items.filter((item) => item.startsWith('later: '));
  const isComplete = named.length + later.length === items.length;
  if (cells.length !== 3 || !/^(?:FS|TH|D|P)-[a-z0-9-]+$/.test(id) || says === '' || !isComplete)
    throw new Error(`no rule: ${line}`);
  return { id, tests: named.map((item) => item.slice(1, -1).replaceAll('\\|', '|')), isLater: later.length > 0 };
}
