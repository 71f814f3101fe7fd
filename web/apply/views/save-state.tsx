// Shows whether everything is saved and sent. Screen readers announce only changes between saved and not saved.
import { useEffect, useState } from 'preact/hooks';
import { useForm } from '../form-context.ts';
import type { SaveState } from '../saving/saver.ts';
import { UploadNote } from './upload-note.tsx';

export function SaveStateNote({ state, retry }: { state: SaveState; retry(): void }) {
  const { texts, uploads } = useForm();
  const isOffline = state === 'offline';
  const [spoken, setSpoken] = useState('');
  useEffect(() => {
    if (isOffline) setSpoken(texts.saved.offline);
    else if (state === 'saved') setSpoken((last) => (last === '' ? '' : texts.saved.saved));
  }, [isOffline, state, texts]);
  // While files are unsent, the text that everything is saved would mislead.
  const savedText = uploads.all.length === 0 && texts.saved.saved;
  return (
    <div class={isOffline ? 'state notice offline' : 'state'} data-state={state}>
      <span aria-hidden="true">
        {isOffline ? texts.saved.offline : state === 'saved' ? savedText : texts.saved.unsaved}
      </span>
      <span class="visually-hidden" role="status">
        {spoken}
      </span>
      {isOffline && (
        <p>
          <button type="button" class="link" onClick={retry}>
            {texts.saved.retry}
          </button>
        </p>
      )}
      <UploadNote />
    </div>
  );
}
