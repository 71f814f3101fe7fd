// Uploads a file for a draft, counts it towards the limits of the form, and records its URN, so that the deletion of
// the form finds it.
import { randomUUID } from 'node:crypto';
import { Problem } from '../../service/http/problem.ts';
import { retryUntilDone } from '../../service/retry.ts';
import type { UploadKey } from '../forms/upload-store.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { type NewFile, type UploadedFile, UploadOutcomeUnknown } from './files.ts';

type UploadOptions = Pick<ApplyRoutesOptions, 'files' | 'uploads' | 'metrics' | 'log' | 'clock'>;

interface Callbacks {
  /** Throws a Problem if the form is not a draft. */
  requireDraft(): Promise<void>;
  /** Subtracts the file from the counts of the client address, the tenant and the total. Never rejects. */
  uncount(): Promise<void>;
}

/**
 * Uploads a file. A refused file does not count; an upload whose outcome is unknown does. Throws Problem
 * `too-many-files` if the form has reached a limit, the problems of `requireDraft` and those of the upload.
 */
export async function uploadFile(
  options: UploadOptions,
  file: NewFile,
  { requireDraft, uncount }: Callbacks,
): Promise<UploadedFile> {
  const { files, uploads, log, clock } = options;
  const { formId, tenantId, content } = file;
  const upload = { formId, tenantId, uploadId: randomUUID() };
  const isCounted = await uploads.count({ ...upload, size: content.length, now: clock() }).catch(async (error) => {
    await uncount();
    throw error;
  });
  if (!isCounted) {
    await uncount();
    await requireDraft();
    throw limitReached(options);
  }
  const uploaded = await files.upload(file).catch(async (error: unknown) => {
    if (error instanceof UploadOutcomeUnknown) {
      log.error(
        { tenant: tenantId, formId, err: error },
        'uploaded file perhaps not recorded: look for it at the file service',
      );
      throw error;
    }
    await uncount();
    await uploads.uncount(upload).catch((cause: unknown) => log.warn({ err: cause }, 'count of uploads not corrected'));
    throw error;
  });
  const isKept = await keep(options, { ...upload, urn: uploaded.urn });
  if (!isKept) throw new Problem('gone', 'The form was deleted during the upload.');
  return uploaded;
}

/** The bounds of the wait before recording a file is retried, in milliseconds. */
const backoff = { first: 200, cap: 2_000 };
/** Milliseconds after which the record of a file is given up. */
const longestKeep = 10_000;

/**
 * Records the URN of a file that the file service has stored. Repeats this if it fails: without the record, nothing
 * would ever delete the file. Returns false if the form was deleted. If it keeps failing, logs the URN, and throws.
 */
async function keep({ uploads, log, clock }: UploadOptions, upload: UploadKey & { urn: string }): Promise<boolean> {
  let isKept = false;
  let failure: unknown;
  const isDone = await retryUntilDone(
    async () => {
      isKept = await uploads.keep({ ...upload, now: clock() });
    },
    {
      ...{ backoff, signal: AbortSignal.timeout(longestKeep) },
      onFailure(error) {
        failure = error;
      },
    },
  );
  if (isDone) return isKept;
  const { tenantId, formId, urn } = upload;
  log.error(
    { tenant: tenantId, formId, urn, err: failure },
    'uploaded file not recorded: delete it at the file service',
  );
  throw failure;
}

/** Returns the problem of a form that has reached a limit. */
function limitReached({ metrics }: UploadOptions): Problem {
  metrics.rateLimited.inc({ limit: 'apply-form-files' });
  return new Problem('too-many-files', 'The form has reached the limit on the number or the total size of its files.');
}
