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
        answer: z.looseObject({ recordId: z.string().nullish() }),
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
        answer: z.unknown(),
        notFound: () => undefined,
      });
    },
  };
}

function pathOf(urn: string): string | undefined {
  const id = fileId.exec(urn)?.[1];
  return id && `/files/${id}`;
}
