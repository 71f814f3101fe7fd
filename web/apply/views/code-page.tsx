// Asks for the emailed code if this browser has not opened the form, or if the code that it used has expired. No code
// is sent before the button is pressed.
import { useState } from 'preact/hooks';
import { ErrorSummary } from '../../shared/error-summary.tsx';
import { described, LabelledField } from '../../shared/field.tsx';
import { type Api, asProblem } from '../api.ts';
import { type Message, textsOf } from '../texts/texts.ts';
import { useSlow } from '../use-slow.ts';
import { type FrameProps, Page } from './frame.tsx';
import { problemText } from './problem-text.ts';

interface CodeProps {
  frame: FrameProps;
  api: Api;
  formId: string;
  /** True if this page has data that is not saved. */
  keepsData: boolean;
  /** Called when the code was correct. */
  onOpened(): Promise<void> | void;
}

export function CodePage({ frame, api, formId, keepsData, onOpened }: CodeProps) {
  const texts = textsOf(frame.language);
  const [code, setCode] = useState('');
  const [problem, setError] = useState<{ text: Message }>();
  const [attempt, setAttempt] = useState(0);
  const [sent, setSent] = useState(0);
  /** False while a code is being sent, so that screen readers read the status again, and after that has failed. */
  const [isSaid, setSaid] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isSlow = useSlow(isBusy);
  const isSent = sent > 0;
  const fail = (text: Message) => {
    setError({ text });
    setAttempt((last) => last + 1);
  };
  const guarded = async (action: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    await action().catch((cause: unknown) => {
      const { status } = asProblem(cause);
      if (status === 403 || status === 400) fail(({ code: { wrong } }) => wrong);
      else fail((now) => problemText(cause, now, now.code.tooMany));
    });
    setBusy(false);
  };
  const send = ({ detail: clicks }: MouseEvent) => {
    // The second click of a double click would ask for another code, which the service refuses as too often.
    if (clicks > 1 && isSent) return;
    void guarded(async () => {
      setSaid(false);
      const replaced = code;
      await api.sendCode(formId);
      // The service accepts only the newest code. The mail may arrive before the response.
      setCode((typed) => (typed === replaced ? '' : typed));
      setSent((count) => count + 1);
      setSaid(true);
    });
  };
  const check = (event: Event) => {
    event.preventDefault();
    // The service removes the same characters.
    const entered = code.replaceAll(/[\s\p{Pd}\p{Cf}]/gu, '');
    if (entered === '') return fail(({ code: { none } }) => none);
    void guarded(async () => {
      await api.checkCode(formId, entered);
      await onOpened();
    });
  };
  const error = problem?.text(texts);
  const parts = { id: 'code', label: texts.code.code, hint: texts.code.hint, error, errorPrefix: texts.problemAt };
  return (
    <Page frame={frame} title={texts.code.title} pageKey="code" hasErrors={error !== undefined}>
      <ErrorSummary title={texts.problem} attempt={attempt} items={error ? [{ text: error, target: 'code' }] : []} />
      {keepsData && <p class="notice">{texts.code.kept}</p>}
      <p>{texts.code.why}</p>
      <div class="buttons">
        <button type="button" class={isSent ? 'quiet' : ''} aria-disabled={isBusy} onClick={send}>
          {isSent ? texts.code.again : texts.code.send}
        </button>
      </div>
      <p role="status">{isSlow ? texts.wait : isSaid && (sent > 1 ? texts.code.sentAgain : texts.code.sent)}</p>
      <form noValidate onSubmit={check}>
        <LabelledField {...parts}>
          <input
            id="code"
            class="short"
            autocomplete="one-time-code"
            autocapitalize="off"
            spellcheck={false}
            {...described(parts)}
            value={code}
            onInput={(event) => setCode(event.currentTarget.value)}
          />
        </LabelledField>
        <div class="buttons">
          <button type="submit" class={isSent ? '' : 'quiet'} aria-disabled={isBusy}>
            {texts.code.button}
          </button>
        </div>
      </form>
      <p class="hint">{texts.code.other}</p>
    </Page>
  );
}
