// Shows, on every page of the form, which files are being sent and which could not be sent. The person can send a file
// again, or go on without it.
import { useRef } from 'preact/hooks';
import { useForm } from '../form-context.ts';
import type { Upload } from '../saving/uploads.ts';

export function UploadNote() {
  const { texts, uploads } = useForm();
  const { running, failed } = uploads;
  const note = useRef<HTMLDivElement>(null);
  return (
    <div class={failed.length > 0 ? 'notice offline' : undefined} id={uploadNoteId} tabIndex={-1} ref={note}>
      <div role="status">
        {running.length > 0 && <p>{texts.files.running(running.length)}</p>}
        {failed.map(({ id, file, failure = 'failed' }) => (
          <p key={id}>{texts.files[failure](file.name)}</p>
        ))}
      </div>
      {uploads.all.map((upload) => (
        // The button that was pressed disappears, so the focus moves to the note.
        <UploadButtons key={upload.id} upload={upload} onDone={() => note.current?.focus()} />
      ))}
    </div>
  );
}

/** The id of the note, for links from the error summary. */
export const uploadNoteId = 'uploads';

function UploadButtons({ upload, onDone }: { upload: Upload; onDone(): void }) {
  const { texts, uploads } = useForm();
  const { file, failure } = upload;
  const retry = () => {
    uploads.retry(upload);
    onDone();
  };
  const discard = () => {
    uploads.discard(upload);
    onDone();
  };
  return (
    <p>
      {failure === 'failed' && (
        <button type="button" class="link" onClick={retry}>
          {texts.files.again(file.name)}
        </button>
      )}{' '}
      <button type="button" class="link" onClick={discard}>
        {texts.files.without(file.name)}
      </button>
    </p>
  );
}
