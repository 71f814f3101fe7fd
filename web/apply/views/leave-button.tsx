// “Leave this computer”: saves, then forgets the form in this browser.
import { useState } from 'preact/hooks';
import { useForm } from '../form-context.ts';

export function LeaveButton({ flush, onLeft }: { flush(): Promise<boolean>; onLeft(): void }) {
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
      <span role="status">{isUnsaved && texts.leave.unsaved}</span>
    </>
  );
}
