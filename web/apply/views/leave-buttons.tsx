// “Leave this computer” saves the draft and removes its cookie from this browser. “Delete this draft” leads to a page
// that asks for confirmation.
import { useState } from 'preact/hooks';
import { useForm } from '../form-context.ts';

interface LeaveProps {
  flush(): Promise<boolean>;
  onLeft(): void;
  /** Undefined if there is no draft to delete. */
  onDelete?(): void;
}

export function LeaveButtons({ flush, onLeft, onDelete }: LeaveProps) {
  const { texts, api, formId } = useForm();
  const [isUnsaved, setUnsaved] = useState(false);
  const leave = async () => {
    try {
      if (!(await flush())) return setUnsaved(true);
      await api.forget(formId);
      onLeft();
    } catch {
      setUnsaved(true);
    }
  };
  return (
    <>
      <button type="button" class="link" onClick={() => void leave()}>
        {texts.leave.button}
      </button>
      {onDelete && (
        <button type="button" class="link" onClick={onDelete}>
          {texts.deletion.button}
        </button>
      )}
      <span role="status">{isUnsaved && texts.leave.unsaved}</span>
    </>
  );
}
