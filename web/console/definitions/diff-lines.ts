// Compares two texts by lines: the longest common subsequence, with a few lines of context around each difference.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

const context = 3;
/**
 * Maximum number of cells in the table of `commonLengths`. Texts that would need more are shown as one replaced block.
 */
const mostCells = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [old, next] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < next.length && old[start] === next[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < next.length - start && old.at(-1 - end) === next.at(-1 - end)) end += 1;
  const lines = [
    ...old.slice(0, start).map((text): DiffLine => ({ kind: 'same', text })),
    ...between(old.slice(start, old.length - end), next.slice(start, next.length - end)),
    ...old.slice(old.length - end).map((text): DiffLine => ({ kind: 'same', text })),
  ];
  return withContext(lines);
}

function between(old: string[], next: string[]): DiffLine[] {
  if (old.length * next.length > mostCells)
    return [
      ...old.map((text): DiffLine => ({ kind: 'removed', text })),
      ...next.map((text): DiffLine => ({ kind: 'added', text })),
    ];
  const lengths = commonLengths(old, next);
  const width = next.length + 1;
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0;
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < next.length) {
    const [oldLine, nextLine] = [old[row], next[column]];
    if (oldLine !== undefined && oldLine === nextLine) {
      lines.push({ kind: 'same', text: oldLine });
      row += 1;
      column += 1;
    } else if (nextLine === undefined || (oldLine !== undefined && at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: 'removed', text: oldLine ?? '' });
      row += 1;
    } else {
      lines.push({ kind: 'added', text: nextLine });
      column += 1;
    }
  }
  return lines;
}

/** Returns, for each pair of lines, the length of the longest common subsequence of the texts from these lines on. */
function commonLengths(old: string[], next: string[]): Uint32Array {
  const width = next.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let row = old.length - 1; row >= 0; row -= 1)
    for (let column = next.length - 1; column >= 0; column -= 1) {
      const isSame = old[row] === next[column];
      const skipped = Math.max(lengths[(row + 1) * width + column] ?? 0, lengths[row * width + column + 1] ?? 0);
      lengths[row * width + column] = isSame ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1 : skipped;
    }
  return lengths;
}

function withContext(lines: DiffLine[]): DiffLine[] {
  const isNear = (index: number) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same');
  const shown: DiffLine[] = [];
  for (const [index, line] of lines.entries()) {
    if (isNear(index)) shown.push(line);
    else if (shown.at(-1)?.text !== '…') shown.push({ kind: 'same', text: '…' });
  }
  return shown.every(({ text }) => text === '…') ? [] : shown;
}
