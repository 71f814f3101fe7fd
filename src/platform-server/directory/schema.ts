// The schemas of the directory's requests and responses.
import { z } from 'zod';

const element = z.string().regex(/^[A-Za-z0-9-]{1,50}$/, 'must be 1 to 50 letters, digits and hyphens');

export const namespaceParams = z.object({ namespace: element });
export const apiParams = z.object({ namespace: element, service: element, api: element });

export const entryResponse = z.object({
  namespace: z.string(),
  service: z.string(),
  url: z.string(),
  urn: z.string(),
});
