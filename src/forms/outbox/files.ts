// Reads and deletes files of deleted forms at the file service. Ignores any URN that does not name a file of the
// platform, so that a URN from a form cannot lead to another path.
import { z } from 'zod';
import type { PlatformClient } from '../../platform/http-client.ts';

export interface FileService {
  /** Returns undefined if the file does not exist. */
  read(urn: string): Promise<{ recordId?: string | null | undefined } | undefined>;
  /** Deletes the file. Also resolves if the file does not exist. */
  remove(urn: string): Promise<void>;
}

const fileId = /:v1:\/files\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/**
 * `client` must be a client of the file service, `<prefix>:platform:file-service:v1`. Every error is a PlatformError.
 */
export function createFileService(client: Pick<PlatformClient, 'request'>): FileService {
  return {
    async read(urn) {
      const path = pathOf(urn);
      if (!path) return undefined;
      return client.request<{ recordId?: string | null | undefined } | undefined>({
        operation: 'read file',
        method: 'GET',
        path,
        response: z.looseObject({ recordId: z.string().nullish() }),
        notFound: () => undefined,
      });
    },
    async remove(urn) {
      const path = pathOf(urn);
      if (!path) return;
      await client.request({
        operation: 'delete file',
        method: 'DELETE',
        path,
        response: z.unknown(),
        notFound: () => undefined,
      });
    },
  };
}

function pathOf(urn: string): string | undefined {
  const id = fileId.exec(urn)?.[1];
  return id && `/files/${id}`;
}

/** Thrown if every file that was tried has failed. `cause` is the last error; `left` are the URNs, failed ones last. */
export class FilesRemain extends Error {
  readonly left: readonly string[];

  constructor(left: readonly string[], cause: unknown) {
    super('no file could be removed', { cause });
    this.left = left;
  }
}

/** Maximum number of files that one call of `removeOwned` removes. It keeps other forms from waiting too long. */
const mostAtOnce = 100;

/**
 * Removes the files with these URNs whose record is `owner`. Leaves other files alone, because an applicant can enter
 * the URN of any file. After `longest` milliseconds, removes no further file. Returns the number of removed files, and
 * the URNs that are left, failed ones last, so that files that cannot be removed do not block the others. Throws
 * FilesRemain only if every file that it tried fails.
 */
export async function removeOwned(
  files: FileService,
  { owner, urns, longest }: { owner: string; urns: readonly string[]; longest: number },
): Promise<{ removed: number; left: string[] }> {
  const failed: string[] = [];
  let failure: unknown;
  let [tried, removed] = [0, 0];
  const began = performance.now();
  for (const urn of urns.slice(0, mostAtOnce)) {
    if (tried > 0 && performance.now() - began >= longest) break;
    tried += 1;
    try {
      if ((await files.read(urn))?.recordId !== owner) continue;
      await files.remove(urn);
      removed += 1;
    } catch (error) {
      failed.push(urn);
      failure = error;
    }
  }
  const left = [...urns.slice(tried), ...failed];
  if (failed.length > 0 && failed.length === tried) throw new FilesRemain(left, failure);
  return { removed, left };
}
