// Finds choices by a part of their label, ignoring case and accents.
import type { Choice } from './registers.ts';

/** Removes case and accents. */
export const folded = (text: string) => text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase().trim();

/** The browser is slow with more options. */
export const mostFound = 100;

/**
 * Returns the first 100 choices whose label contains the text. Labels that begin with the text come first. Without a
 * text, returns the first 100 of all choices.
 */
export function found(choices: readonly Choice[], text = ''): Choice[] {
  const wanted = folded(text);
  if (wanted === '') return choices.slice(0, mostFound);
  const hits = choices.filter(({ label }) => folded(label).includes(wanted));
  const isFirst = ({ label }: Choice) => folded(label).startsWith(wanted);
  return [...hits.filter(isFirst), ...hits.filter((hit) => !isFirst(hit))].slice(0, mostFound);
}
