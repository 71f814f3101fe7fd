// Offers to remove invalid answers that no question shows, usually because a rule has hidden the question since it was
// answered.
import { useRef } from 'preact/hooks';
import { useForm } from '../form-context.ts';
import { withoutAnswer } from '../model/files.ts';
import type { Path } from '../model/json.ts';

interface HiddenAnswersProps {
  /** Paths of the answers to remove. */
  paths: readonly Path[];
  /** True after the person has removed such answers, if no other problem remains. */
  isRemoved: boolean;
  onRemoved(): void;
}

export function HiddenAnswers({ paths, isRemoved, onRemoved }: HiddenAnswersProps) {
  const { texts, changeContent } = useForm();
  const note = useRef<HTMLDivElement>(null);
  const remove = () => {
    changeContent((content) => paths.reduce((left, path) => withoutAnswer(left, path), content));
    onRemoved();
    // The button disappears, so the focus moves to the note. If other problems remain, their summary then gets it.
    note.current?.focus();
  };
  return (
    <div id={hiddenAnswersId} tabIndex={-1} ref={note}>
      {paths.length > 0 && (
        <p>
          <button type="button" class="quiet" onClick={remove}>
            {texts.check.removeHidden}
          </button>
        </p>
      )}
      <div role="status">{isRemoved && <p>{texts.check.removed}</p>}</div>
    </div>
  );
}

/** The id of the note, for links from the error summary. */
export const hiddenAnswersId = 'hidden-answers';
