// “Leave this computer” saves the draft and removes its cookie from this browser. “Delete this draft” leads to a page
// that asks for confirmation.
import { useState } from 'preact/hooks';
import { useForm } from '../form-context.ts';
import type { DraftWork } from '../saving/draft-work.ts';
import { useIsShown } from '../use-is-shown.ts';
import { useSlow } from '../use-slow.ts';

interface LeaveProps {
  work: DraftWork;
  onLeft(): void;
  onDelete(): void;
}

export function LeaveButtons({ work, onLeft, onDelete }: LeaveProps) {
  const { texts, api, formId, uploads } = useForm();
  const [hint, setHint] = useState<'sending' | 'unsent' | 'unsaved' | 'failed'>();
  const [isBusy, setBusy] = useState(false);
  const isSlow = useSlow(isBusy);
  // Since the hint appeared, the person may have used the upload note to send or discard the failed files.
  const isOver = hint === 'unsent' && uploads.failed.length === 0;
  const isShown = useIsShown();
  const leave = async () => {
    if (isBusy) return;
    setBusy(true);
    await tryToLeave();
    setBusy(false);
  };
  const tryToLeave = async () => {
    setHint(uploads.running.length > 0 ? 'sending' : undefined);
    try {
      const outcome = await work.flush();
      // A person who went to another page while files were being sent is still filling in the form.
      if (!isShown.current) return;
      if (outcome !== 'saved') return setHint(outcome);
      await api.forget(formId);
      // Something may have been typed or chosen since, and is sent only after a code was entered.
      if (work.isSafe) onLeft();
      else work.requireCode();
    } catch {
      setHint('failed');
    }
  };
  return (
    <>
      <button type="button" class="link" aria-disabled={isBusy} onClick={() => void leave()}>
        {texts.leave.button}
      </button>
      <button type="button" class="link" onClick={onDelete}>
        {texts.deletion.button}
      </button>
      <span role="status">{hint && !isOver ? texts.leave[hint] : isSlow && texts.wait}</span>
    </>
  );
}
