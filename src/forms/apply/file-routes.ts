// Uploads a file for a question of a form that this browser has opened.
import { z } from 'zod';
import { type MinimumRate, readBodyBytes, usualRate } from '../../service/http/body-bytes.ts';
import { networkOf } from '../../service/http/client-address.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { createRequestQueue } from '../../service/limits/request-queue.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import type { FormOfTenant } from './code-routes.ts';
import { countUpload } from './counts.ts';
import { hideForeignForm } from './guards.ts';
import { formFailures, formParams, formPath } from './schema.ts';
import { uploadFile } from './upload-file.ts';

/**
 * A file name that all file systems and pages can show: without a path, control characters or changes of text
 * direction. `.` and `..` name folders. The pages change the names of files accordingly (web/apply/model/files.ts).
 */
export const fileName = z
  .string()
  .trim()
  .min(1)
  .max(150, 'must have at most 150 characters')
  .regex(/^(?!\.\.?$)[^/\\\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+$/u, 'must be the name of a file');

const uploadedFile = z.object({ urn: z.string(), name: z.string(), size: z.int() }).meta({ id: 'UploadedFile' });

export function uploadFileRoute(options: ApplyRoutesOptions): Route {
  const { guards, files, fileLimit } = options;
  const queue = createUploadQueue(options);
  return route({
    method: 'post',
    path: `${formPath}/files`,
    audit: 'form.upload-file',
    summary: 'Upload a file',
    description: 'The body is the content of the file. Save its URN in `files` of the form data.',
    tag: 'Intake application',
    guards: [...guards.forForm, guards.uploadLimit],
    params: formParams,
    query: z.object({ name: fileName }),
    bodyType: 'application/octet-stream',
    streamedBody: z.file(),
    responses: {
      201: { description: 'The file', schema: uploadedFile },
      ...formFailures,
      409: { description: 'The form is locked, it is not a draft, or it has reached its limit of files' },
      408: {
        description:
          'The file arrives too slowly: after 30 s, at less than 8 KiB/s on average; while others wait to upload, after 5 s, at less than 64 KiB/s',
      },
      413: { description: 'The file is too large' },
      501: { description: 'The platform has no file service' },
    },
    async handle({ params: { formId }, query: { name } }, request, response) {
      const { id: tenantId } = tenantOf(response);
      if (!(await files.isAvailable())) throw new Problem('no-file-service', 'The platform has no file service.');
      const form = { formId, tenantId, context: response };
      await requireDraft(options, form);
      const requester = { tenant: tenantId, member: networkOf(response.locals.forwarded.address) };
      const uploaded = await queue.run(requester, async () => {
        const content = await readBodyBytes(request, fileLimit, () =>
          queue.isWanted(requester) ? contestedRate : usualRate,
        );
        const { uncount } = await countUpload(options, content.length, response);
        const file = { formId, tenantId, name, content };
        return uploadFile(options, file, { requireDraft: () => requireDraft(options, form), uncount });
      });
      response.status(201).json(uploaded);
    },
  });
}

/**
 * The minimum rate of an upload while another person waits for its slot. Without this rate, a few client addresses with
 * slow uploads would keep everybody else from uploading. The grace is shorter than the longest wait for a slot, so a
 * slow upload loses its slot before the waiting upload gives up.
 */
const contestedRate: MinimumRate = { bytesPerSecond: 65_536, grace: 5_000 };

/** Throws a Problem if the form is not a draft, or does not exist. */
async function requireDraft(
  { api }: Pick<ApplyRoutesOptions, 'api'>,
  { formId, ...form }: FormOfTenant,
): Promise<void> {
  const { text } = await api.call({ method: 'GET', path: `/forms/${formId}`, ...form }).catch(hideForeignForm);
  const { status } = JSON.parse(text) as { status: string };
  if (status === 'Locked') throw new Problem('form-locked', 'The form is locked; an administrator can unlock it.');
  if (status !== 'Draft')
    throw new Problem('form-not-draft', `The form is ${status}, not Draft.`, { members: { formStatus: status } });
}

/**
 * Limits concurrent uploads, because a file is held in memory while it is uploaded. The limits for one member
 * apply to a client network, not to a form. Otherwise, a person with several drafts could use all slots of a tenant.
 */
function createUploadQueue({ metrics }: Pick<ApplyRoutesOptions, 'metrics'>) {
  return createRequestQueue('uploads', metrics, {
    slots: { total: 6, perTenant: 4, perMember: 2 },
    waiting: { total: 50, perTenant: 25, perMember: 10 },
    detail: 'Too many files are being uploaded.',
  });
}
