// The payload of a job: ids, and the trace of the request that caused the job. The job continues this trace.
import { z } from 'zod';

/**
 * Returns SQL for a payload. `members` contains arguments of json_build_object. `trace` is the placeholder of the
 * trace, such as `$4`; the trace may be null.
 */
export function jobSql(members: string, trace: string): string {
  return `json_strip_nulls(json_build_object(${members}, 'traceparent', ${trace}::text))`;
}

/** The trace of the request. Absent if the request was not traced. */
const traceparent = z.string().optional();

export const routeEventPayload = z.object({ event: z.string(), traceparent });
export const deliverPayload = z.object({
  event: z.string(),
  typeId: z.string(),
  subscriberId: z.string(),
  traceparent,
});
