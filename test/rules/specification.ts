// Reads the tables of rules and their tests in docs/specification.md and docs/specification-token-handler.md.

export interface Rule {
  id: string;
  /** The tests of the rule, each as `file › describe › … › title`. */
  tests: string[];
  /** True if a part of the rule is not built yet. */
  isLater: boolean;
}

/** Returns the rules of a page, in the page's order. Throws if a table row is neither a heading nor a rule. */
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
