// Finds choices by a part of their label, ignoring case and accents.
import type { Choice } from './registers.ts';

const folded = (text: string) => text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase().trim();

/** Returns at most 100 choices whose label contains the text. Labels that begin with the text come first. */
export function found(choices: readonly Choice[], text: string): Choice[] {
  const wanted = folded(text);
  const hits = choices.filter(({ label }) => folded(label).includes(wanted));
  const isFirst = ({ label }: Choice) => folded(label).startsWith(wanted);
  return [...hits.filter(isFirst), ...hits.filter((hit) => !isFirst(hit))].slice(0, 100);
}
