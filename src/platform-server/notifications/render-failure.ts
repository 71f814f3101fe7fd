// The error of a notice that cannot be rendered because of its template. A retry cannot succeed, so the notice is
// dropped.

export type RenderFailureReason = 'template' | 'time' | 'memory';

/**
 * `reason`: the template is invalid, or exceeded the limit of time or memory. The message contains no data of the
 * notice.
 */
export class RenderFailure extends Error {
  readonly reason: RenderFailureReason;

  constructor(reason: RenderFailureReason, detail: string) {
    super(`The template ${detail}.`);
    this.name = 'RenderFailure';
    this.reason = reason;
  }
}
