// Uploads applicants' files to the platform's file service with the account of the intake application. The recordId of
// each file is the URN of its form. When the form service deletes a form, it deletes only the files with that recordId.
import { Agent, FormData, fetch } from 'undici';
import type { Directory } from '../../platform/directory.ts';
import type { TokenSource } from '../../platform/http-client.ts';
import { isUnconnected, PlatformError } from '../../platform/platform-error.ts';
import { codeOfCause } from '../../service/error-code.ts';
import { Problem } from '../../service/http/problem.ts';
import { uncompressedResponses } from '../../service/http/uncompressed-responses.ts';
import { isObject } from '../../service/json-value.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { scopeHeaders } from '../../service/operations/request-scope.ts';
import type { Urns } from '../../service/urn.ts';

export interface UploadedFile {
  urn: string;
  name: string;
  /** Size of the file in bytes. */
  size: number;
}

export interface NewFile {
  tenantId: string;
  formId: string;
  name: string;
  content: Buffer;
}

/** Thrown if the file service may have stored the file, although it returned no usable response. */
export class UploadOutcomeUnknown extends Problem {}

export interface FileUpload {
  /** Returns false if the directory lists no file service. Throws PlatformError if the directory fails. */
  isAvailable(): Promise<boolean>;
  /**
   * Uploads the file. Throws UploadOutcomeUnknown, Problem `no-file-service`, a Problem with status 400 or 502, or
   * PlatformError if the directory or the account fails.
   */
  upload(file: NewFile): Promise<UploadedFile>;
}

export interface FileUploadOptions {
  directory: Pick<Directory, 'resolve'>;
  account: TokenSource;
  urns: Urns;
  /** The value that the file service expects in the form field `type`. */
  fileType: string;
  metrics: Pick<Metrics, 'dependencyFailures'>;
}

/** Time limit of an upload in milliseconds. */
const longestUpload = 60_000;
/** Maximum size of the file service's response in bytes. A response describes one file. */
const longestResponse = 65_536;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function createFileUpload({ directory, account, urns, fileType, metrics }: FileUploadOptions): FileUpload {
  const api = urns.service('file-service:v1');
  const dispatcher = new Agent({ maxResponseSize: longestResponse }).compose(uncompressedResponses);

  /** Returns the URL of the file service; undefined if the directory does not list one. */
  const find = () =>
    directory.resolve(api).catch((error: unknown) => {
      if (error instanceof PlatformError && error.reason === 'absent') return undefined;
      throw error;
    });

  function fail(kind: 'timeout' | 'unreachable' | 'failed' | 'rejected', cause?: unknown): Problem {
    metrics.dependencyFailures.inc({ dependency: 'files', kind });
    const isRefused = kind === 'rejected' || isUnconnected(codeOfCause(cause));
    const Failure = isRefused ? Problem : UploadOutcomeUnknown;
    const slug = kind === 'timeout' ? 'dependency-timeout' : 'dependency-failed';
    return new Failure(slug, 'The file service did not accept the file.', { cause });
  }

  async function post(url: string, file: NewFile): Promise<{ status: number; body: unknown }> {
    const form = new FormData();
    // The file service must receive the other form fields before the file.
    form.set('type', fileType);
    form.set('recordId', urns.form(file.formId));
    form.set('filename', file.name);
    form.set('file', new Blob([new Uint8Array(file.content)]), file.name);
    const signal = AbortSignal.timeout(longestUpload);
    try {
      const response = await fetch(`${url}/files?tenantId=${encodeURIComponent(file.tenantId)}`, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${await account.token()}`,
          // A reused connection may be dead (decision 0081), and an upload cannot be retried.
          connection: 'close',
          ...scopeHeaders(),
        },
        body: form,
        dispatcher,
        signal,
      });
      return { status: response.status, body: await response.json().catch(() => undefined) };
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw fail(signal.aborted ? 'timeout' : 'unreachable', error);
    }
  }

  return {
    isAvailable: async () => (await find()) !== undefined,
    async upload(file) {
      const url = await find();
      if (url === undefined) throw new Problem('no-file-service', 'The platform has no file service.');
      const { status, body } = await post(url, file);
      if (status === 400 || status === 413 || status === 415)
        throw new Problem('invalid-request', 'The file service does not accept this file.');
      const id = isObject(body) && typeof body.id === 'string' && uuid.test(body.id) ? body.id : undefined;
      if (status >= 300 || id === undefined) throw fail(status < 300 || status >= 500 ? 'failed' : 'rejected');
      return { urn: `${api}:/files/${id}`, name: file.name, size: file.content.length };
    },
  };
}
