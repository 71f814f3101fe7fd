// Shows, on every page of the form, which files are being sent and which could not be sent. The person can send a file
// again, or go on without it.
import { useForm } from '../form-context.ts';
import type { Upload } from '../saving/uploads.ts';

export function UploadNote() {
  const { texts, uploads } = useForm();
  const { running, failed } = uploads;
  return (
    <div class={failed.length > 0 ? 'notice offline' : undefined} id={uploadNoteId}>
      <div role="status">
        {running.length > 0 && <p>{texts.files.running(running.length)}</p>}
        {failed.map(({ id, file, failure = 'failed' }) => (
          <p key={id}>{texts.files[failure](file.name)}</p>
        ))}
      </div>
      {uploads.all.map((upload) => (
        <UploadButtons key={upload.id} upload={upload} />
      ))}
    </div>
  );
}

/** The id of the note, for links from the error summary. */
export const uploadNoteId = 'uploads';

function UploadButtons({ upload }: { upload: Upload }) {
  const { texts, uploads } = useForm();
  const { file, failure } = upload;
  return (
    <p>
      {failure === 'failed' && (
        <button type="button" class="link" onClick={() => uploads.retry(upload)}>
          {texts.files.again(file.name)}
        </button>
      )}{' '}
      <button type="button" class="link" onClick={() => uploads.discard(upload)}>
        {texts.files.without(file.name)}
      </button>
    </p>
  );
}
