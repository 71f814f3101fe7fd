// The properties that every page of a form gets.
import type { ComponentChildren } from 'preact';
import type { Fragment } from '../address.ts';
import type { FormContext } from '../form-context.ts';
import type { Place, pagesOf } from '../model/elements.ts';
import type { createValidator } from '../model/validator.ts';
import type { OpenDraft } from '../saving/use-draft.ts';
import type { Message } from '../texts/texts.ts';
import type { FrameProps } from './frame.tsx';

export interface FormModel {
  place: Place;
  pages: ReturnType<typeof pagesOf>;
  validator: ReturnType<typeof createValidator>;
}

export interface SharedProps extends FormModel {
  frame: FrameProps;
  form: FormContext;
  draft: OpenDraft;
  announcement: ComponentChildren;
  /** Shows messages at fields, keyed by the pointer of the field. */
  setErrors(errors: ReadonlyMap<string, Message>): void;
  go(page: Fragment['page'], how?: 'push' | 'replace'): void;
}
