// The error of a notice whose template cannot be rendered. A retry cannot succeed, so the notice is dropped.

export type RenderFailureReason = 'template' | 'time' | 'memory';

/**
 * `reason` says whether the template is invalid, or exceeded the limit of time or memory. The message contains no data
 * of the notice.
 */
export class RenderFailure extends Error {
  readonly reason: RenderFailureReason;

  constructor(reason: RenderFailureReason, detail: string) {
    super(`The template ${detail}.`);
    this.name = 'RenderFailure';
    this.reason = reason;
  }
}
