// Shows whether everything is saved and sent. Screen readers announce only changes between saved and not saved.
import { useEffect, useState } from 'preact/hooks';
import { useForm } from '../form-context.ts';
import type { SaveState } from '../saving/saver.ts';
import { UploadNote } from './upload-note.tsx';

export function SaveStateNote({ state, retry }: { state: SaveState; retry(): void }) {
  const { texts, uploads } = useForm();
  const failure = state === 'offline' || state === 'refused' ? texts.saved[state] : undefined;
  const [spoken, setSpoken] = useState('');
  useEffect(() => {
    if (failure) setSpoken(failure);
    else if (state === 'saved') setSpoken((last) => (last === '' ? '' : texts.saved.saved));
  }, [failure, state, texts]);
  // While files are unsent, a text that says that everything is saved would mislead people.
  const savedText = uploads.all.length === 0 && texts.saved.saved;
  return (
    <div class={failure ? 'state notice offline' : 'state'} data-state={state}>
      <span aria-hidden="true">{failure ?? (state === 'saved' ? savedText : texts.saved.unsaved)}</span>
      <span class="visually-hidden" role="status">
        {spoken}
      </span>
      {failure && (
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
