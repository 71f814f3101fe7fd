// The schemas of the tenant service's requests and responses.
import { z } from 'zod';
import { tenantIdPattern } from '../tenant-key.ts';

const filter = z.string().min(1).max(50).optional();

export const listQuery = z.object({ name: filter, realm: filter, adminEmail: z.string().min(1).max(254).optional() });
export const idParams = z.object({ id: z.string().regex(tenantIdPattern, 'must be 24 hexadecimal digits') });

export const tenantResponse = z.object({
  id: z.string(),
  name: z.string(),
  realm: z.string(),
  status: z.literal('active'),
  adminEmail: z.string().optional(),
});
export const listResponse = z.object({ results: z.array(tenantResponse), page: z.object({ size: z.int() }) });
