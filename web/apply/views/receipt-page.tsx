// The receipt: shows the receipt number, and a copy of the answers to print.
import type { Submission } from '../api.ts';
import { useForm } from '../form-context.ts';
import type { Field } from '../model/fields.ts';
import { itemsOf } from '../model/questions.ts';
import { summarized } from '../model/titles.ts';
import { Answers } from './answers.tsx';
import { type FrameProps, Page } from './frame.tsx';
import { LeaveButtons } from './leave-buttons.tsx';
import { dateText } from './problem-text.ts';

interface ReceiptProps {
  frame: FrameProps;
  submission: Submission;
  fields: readonly Field[];
  onLeft(): void;
}

export function ReceiptPage({ frame, submission, fields, onLeft }: ReceiptProps) {
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
        <LeaveButtons flush={async () => 'saved'} onLeft={onLeft} />
      </div>
      <h2>{receipt.copy}</h2>
      <Answers fields={summarized(fields, (field) => itemsOf(field, data).length === 0)} />
    </Page>
  );
}
