// Defines the problem response for a request that the token handler's checks reject. Metrics count rejections by
// `reason`.
import { Problem, type ProblemOptions } from '../service/http/problem.ts';
import type { ProblemSlug } from '../service/http/problem-types.ts';

export const rejectionReasons = ['session', 'csrf', 'path', 'host', 'target', 'method', 'service-worker'] as const;
export type RejectionReason = (typeof rejectionReasons)[number];

export class Rejection extends Problem {
  readonly reason: RejectionReason;

  /** `detail` is sent to the client, as for every problem. */
  constructor(reason: RejectionReason, slug: ProblemSlug, detail: string, options: ProblemOptions = {}) {
    super(slug, detail, options);
    this.reason = reason;
  }
}
