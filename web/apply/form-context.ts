// What controls need to know about the form that they are part of.
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Api } from './api.ts';
import type { Place, UiElement } from './model/elements.ts';
import { type Path, pointerOf } from './model/json.ts';
import type { Registers } from './registers.ts';
import type { Language, Texts } from './texts/texts.ts';

/** The names of uploaded files, and their URNs. */
export type Files = Record<string, string>;

/** An upload that has not ended. */
export interface Upload {
  /** Where the answer is; undefined if the item of a list that contains it was removed. */
  path: Path | undefined;
}

export interface FormContext {
  formId: string;
  api: Api;
  registers: Registers;
  texts: Texts;
  language: Language;
  data: unknown;
  files: Files;
  /** False if the installation has no file service. */
  allowsFiles: boolean;
  /** Error messages, keyed by the pointer of the field. */
  errors: ReadonlyMap<string, string>;
  /** The uploads of all questions. A list that loses an item corrects their paths. */
  uploads: Set<Upload>;
  change(path: Path, value: unknown): void;
  /** Passes the present value and files to `work`. Those of the last rendering may be old when an upload ends. */
  changeFiles(path: Path, work: (value: unknown, files: Files) => { value: unknown; files: Files }): void;
  /** Shows elements inside a control, such as those of an object. */
  show(elements: readonly UiElement[], place: Place): ComponentChildren;
  /** Makes screen readers read the text out. */
  announce(text: string): void;
}

const context = createContext<FormContext | undefined>(undefined);
export const FormProvider = context.Provider;

export function useForm(): FormContext {
  const form = useContext(context);
  if (!form) throw new Error('There is no form around this control.');
  return form;
}

/** Id of the element that shows the value at a path. An id has no white space. */
export const idOf = (path: Path): string => `field${encodeURIComponent(pointerOf(path)).replaceAll('%', ':')}`;
