// The files of a form. The form data stores the URNs of a question's files as one text, separated by semicolons.
// `files` has the URNs of all files, keyed by file name.
import { type Path, valueAt, withValueAt } from './json.ts';

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
  const present = isMultiple ? urnsIn(valueAt(data, path)) : [];
  return {
    data: withValueAt(data, path, joined([...present, urn])),
    files: { ...files, [freeName(name, files)]: urn },
  };
}

export function withoutFile({ data, files }: FormContent, path: Path, urn: string): FormContent {
  const rest = urnsIn(valueAt(data, path)).filter((other) => other !== urn);
  return {
    data: withValueAt(data, path, joined(rest)),
    files: Object.fromEntries(Object.entries(files).filter(([, other]) => other !== urn)),
  };
}

/**
 * Returns a unique name for a file, because `files` is keyed by name, and two uploaded files may have the same name.
 */
function freeName(name: string, files: Record<string, string>): string {
  let free = name;
  for (let number = 2; Object.hasOwn(files, free); number += 1) free = `${name} (${number})`;
  return free;
}
