// The files of a form. The form data stores the URNs of a question's files as one text, separated by semicolons.
// `files` has the URNs of all files, keyed by file name.
import { type Path, valueAt, withAnswer, withValueAt } from './json.ts';

interface FormContent {
  data: unknown;
  files: Record<string, string>;
}

export const urnsIn = (value: unknown): string[] => (typeof value === 'string' ? value.split(';').filter(Boolean) : []);
const joined = (urns: readonly string[]): string | undefined => (urns.length > 0 ? urns.join(';') : undefined);

/** Characters that the service refuses in the name of a file: see `fileName` in src/forms/apply/file-routes.ts. */
const refused = /[/\\\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;
const longestName = 150;
const longestExtension = 20;

/**
 * Returns the name under which a file is stored: its own name, changed only as far as the service requires. A long name
 * keeps its extension, by which people and programs recognise the kind of the file.
 */
export function storedName(name: string): string {
  const allowed = name.toWellFormed().replaceAll(refused, '_').trim();
  const [extension = ''] = /(?<=.)\.[^.\s]+$/u.exec(allowed) ?? [];
  const end = allowed.length > longestName && extension.length <= longestExtension ? extension : '';
  const start = allowed.slice(0, allowed.length - end.length).slice(0, longestName - end.length);
  // The cut may have split a character that consists of two units, or end in white space.
  const shortened = `${start.replace(/[\ud800-\udbff]$/, '')}${end}`.trim();
  return /^\.{0,2}$/.test(shortened) ? '_' : shortened;
}

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

/** Removes an answer, and the files that it names. */
export function withoutAnswer({ data, files }: FormContent, path: Path): FormContent {
  return {
    data: withAnswer(data, path, undefined),
    files: without(files, textsIn(valueAt(data, path)).flatMap(urnsIn)),
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
 * Combines the files of two versions of a form, for the data that was merged from these versions. Both may have given
 * the same name to different files. A file that only one of them has is kept if an answer still names it.
 */
export function mergedFiles(
  mine: Record<string, string>,
  theirs: Record<string, string>,
  data: unknown,
): Record<string, string> {
  const named = new Set(textsIn(data).flatMap(urnsIn));
  const kept = (files: Record<string, string>, others: Record<string, string>) =>
    Object.entries(files).filter(([, urn]) => named.has(urn) || Object.values(others).includes(urn));
  const added = kept(mine, theirs).filter(([, urn]) => !Object.values(theirs).includes(urn));
  let merged: Record<string, string> = Object.fromEntries(kept(theirs, mine));
  for (const [name, urn] of added) merged = { ...merged, [freeName(name, merged)]: urn };
  return merged;
}

/**
 * Returns a unique name for a file, because `files` is keyed by name, and two uploaded files may have the same name.
 */
function freeName(name: string, files: Record<string, string>): string {
  let free = name;
  for (let number = 2; Object.hasOwn(files, free); number += 1) free = `${name} (${number})`;
  return free;
}
