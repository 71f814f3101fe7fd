// The files of a form. The form data stores the URNs of a question's files as one text, separated by semicolons.
// `files` has the URNs of all files, keyed by file name.
import { type Path, valueAt, withAnswer, withValueAt } from './json.ts';

interface FormContent {
  data: unknown;
  files: Record<string, string>;
}

export const urnsIn = (value: unknown): string[] => (typeof value === 'string' ? value.split(';').filter(Boolean) : []);
const joined = (urns: readonly string[]): string | undefined => (urns.length > 0 ? urns.join(';') : undefined);

interface SentFile {
  urn: string;
  name: string;
  /** True if the file is added to the files of the question, instead of replacing them. */
  isMultiple: boolean;
}

export function withFile({ data, files }: FormContent, path: Path, { urn, name, isMultiple }: SentFile): FormContent {
  const present = urnsIn(valueAt(data, path));
  const kept = isMultiple ? files : without(files, present);
  return {
    data: withValueAt(data, path, joined([...(isMultiple ? present : []), urn])),
    files: { ...kept, [freeName(name, kept)]: urn },
  };
}

export function withoutFile({ data, files }: FormContent, path: Path, urn: string): FormContent {
  const rest = urnsIn(valueAt(data, path)).filter((other) => other !== urn);
  return {
    data: withAnswer(data, path, joined(rest)),
    files: without(files, [urn]),
  };
}

/** Removes an item of a list, and the files of its questions. */
export function withoutItem({ data, files }: FormContent, list: Path, index: number): FormContent {
  const items = valueAt(data, list);
  if (!Array.isArray(items)) return { data, files };
  const rest = items.toSpliced(index, 1);
  return {
    data: withAnswer(data, list, rest.length > 0 ? rest : undefined),
    files: without(files, textsIn(items[index]).flatMap(urnsIn)),
  };
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

const without = (files: Record<string, string>, urns: readonly string[]) =>
  Object.fromEntries(Object.entries(files).filter(([, urn]) => !urns.includes(urn)));

/**
 * Returns a unique name for a file, because `files` is keyed by name, and two uploaded files may have the same name.
 */
function freeName(name: string, files: Record<string, string>): string {
  let free = name;
  for (let number = 2; Object.hasOwn(files, free); number += 1) free = `${name} (${number})`;
  return free;
}
