// Describes why a form cannot be submitted, in the words of the summary before submission.
import { type Field, nameOf, titleAt } from '../model/fields.ts';
import { type Path, pathOf, pointerOf } from '../model/json.ts';
import { messageFor } from '../model/messages.ts';
import { fieldAround, fieldAt, hiddenAnswerAt } from '../model/questions.ts';
import { titled } from '../model/titles.ts';
import type { Finding } from '../model/validator.ts';
import type { Upload } from '../saving/uploads.ts';
import type { Message, Texts } from '../texts/texts.ts';
import { hiddenAnswersId } from './hidden-answers.tsx';
import type { SharedProps } from './shared-props.ts';
import { uploadNoteId } from './upload-note.tsx';

export interface Problem {
  text: Message;
  field?: Field | undefined;
  /** Id of the element that the problem is about, if it is not about a field. */
  target?: string;
  /** Path of an answer that no question shows. The problem goes away if the answer is removed. */
  hidden?: Path;
}

export const ofUpload = ({ file, failure = 'failed' }: Upload): Problem => ({
  text: ({ files }) => files[failure](file.name),
  target: uploadNoteId,
});

export const ofFinding = (finding: Finding, field: Field | undefined, fields: readonly Field[]): Problem => ({
  field,
  text: (texts) => messageFor(finding, field && titled(field, fields, texts), texts),
});

/** The problem of a text that is not in the list of its question. */
export const ofUnlisted = (field: Field, fields: readonly Field[]): Problem => ({
  field,
  text: (texts) => texts.errors.notListed(titled(field, fields, texts).label),
});

interface Shown extends Pick<SharedProps, 'draft' | 'place'> {
  fields: readonly Field[];
}

/**
 * Returns the problems for these errors of the service. The service's own wording is meant for developers, so
 * people see a different text. Lists each hidden answer once, although the service may find several faults in it.
 */
export function ofTheService(errors: readonly { pointer: string }[], shown: Shown): Problem[] {
  const problems = errors.map(({ pointer }) => ofPointer(pointer, shown));
  const isFirst = ({ hidden }: Problem, index: number) =>
    !hidden || problems.findIndex((other) => other.hidden && pointerOf(other.hidden) === pointerOf(hidden)) === index;
  return problems.filter(isFirst);
}

function ofPointer(pointer: string, { fields, place, draft }: Shown): Problem {
  // The pointers of the service begin with /data.
  const path = pathOf(pointer).slice(1);
  const hidden = hiddenAnswerAt(path, fields, draft.work.content.data);
  if (hidden) return { hidden, target: hiddenAnswersId, text: ({ errors }) => errors.hidden(titleAt(hidden, place)) };
  const field = fieldAt(path, fields) ?? fieldAround(path, fields);
  const labelIn = (texts: Texts) => (field ? titled(field, fields, texts).label : nameOf(path));
  return { field, text: (texts) => (path.length === 0 ? texts.errors.form : texts.errors.other(labelIn(texts))) };
}
