// A context that gives controls the data and the functions of their form.
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Api } from './api.ts';
import type { Place, UiElement } from './model/elements.ts';
import { type Path, pointerOf } from './model/json.ts';
import type { Registers } from './registers.ts';
import type { Content } from './saving/saver.ts';
import type { Uploads } from './saving/uploads.ts';
import type { Language, Texts } from './texts/texts.ts';

export interface FormContext {
  formId: string;
  api: Api;
  registers: Registers;
  texts: Texts;
  language: Language;
  data: unknown;
  /** The URNs of uploaded files, keyed by file name. */
  files: Content['files'];
  /** False if the installation has no file service. */
  allowsFiles: boolean;
  /** Maximum size of a file in bytes. */
  fileLimit?: number | undefined;
  /** Error messages, keyed by the pointer of the field. */
  errors: ReadonlyMap<string, string>;
  /**
   * Texts that were typed into an input and are not in its list, keyed by the pointer of the field. They are not
   * answers, so `data` lacks them.
   */
  unlisted?: Map<string, string>;
  /** The uploads of all questions. */
  uploads: Uploads;
  change(path: Path, value: unknown): void;
  /** Removes an item of a list, with its files, running uploads and error messages. */
  removeItem(list: Path, index: number): void;
  /** Changes the data and the files. `work` gets the current content, which may be newer than the last rendering. */
  changeContent(work: (content: Content) => Content): void;
  /** Shows elements inside a control, such as the fields of an object. */
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

/**
 * Returns the HTML id of the element that shows the value at a path. Encodes the path, because an id must not contain
 * white space.
 */
export const idOf = (path: Path): string => `field${encodeURIComponent(pointerOf(path)).replaceAll('%', ':')}`;
