// The receipt: shows the receipt number, and a copy of the answers to print. Nothing is left to save, but the answers
// stay on the screen and behind the browser's buttons until the person closes the receipt.
import { useState } from 'preact/hooks';
import type { Submission } from '../api.ts';
import { useForm } from '../form-context.ts';
import type { Field } from '../model/fields.ts';
import { itemsOf } from '../model/questions.ts';
import { summarized } from '../model/titles.ts';
import { useSlow } from '../use-slow.ts';
import { Answers } from './answers.tsx';
import { type FrameProps, Page } from './frame.tsx';
import { dateText } from './problem-text.ts';

interface ReceiptProps {
  frame: FrameProps;
  submission: Submission;
  fields: readonly Field[];
  /** Called after the receipt was closed. */
  onFinished(): void;
}

export function ReceiptPage({ frame, submission, fields, onFinished }: ReceiptProps) {
  const { texts, data } = useForm();
  const { receipt, locale } = texts;
  return (
    <Page frame={frame} title={receipt.title} pageKey="receipt">
      <div class="receipt">
        {receipt.number} <strong>{submission.number}</strong>
        {receipt.sentOn(dateText(submission.submitted, locale))}
      </div>
      <p class="no-print">{receipt.keep}</p>
      <div class="buttons">
        <button type="button" onClick={() => window.print()}>
          {receipt.print}
        </button>
        <CloseButton onClosed={onFinished} />
      </div>
      <h2>{receipt.copy}</h2>
      <Answers fields={summarized(fields, (field) => itemsOf(field, data).length === 0)} />
    </Page>
  );
}

/** Removes the cookie of the form from this browser. */
function CloseButton({ onClosed }: { onClosed(): void }) {
  const { texts, api, formId } = useForm();
  const [state, setState] = useState<'busy' | 'failed'>();
  const isBusy = state === 'busy';
  const isSlow = useSlow(isBusy);
  const close = () => {
    if (isBusy) return;
    setState('busy');
    api.forget(formId).then(onClosed, () => setState('failed'));
  };
  return (
    <>
      <button type="button" class="link" aria-disabled={isBusy} onClick={close}>
        {texts.receipt.close}
      </button>
      <span role="status">{isSlow ? texts.wait : state === 'failed' && texts.saved.offlineRead}</span>
    </>
  );
}
