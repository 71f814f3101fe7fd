// A notice that cannot be rendered because of its template. Trying again cannot help, so such a delivery is given up.

export type RenderFailureReason = 'template' | 'time' | 'memory';

/** `reason`: the template is at fault, or it exceeded the limit of time or memory. The message quotes no data. */
export class RenderFailure extends Error {
  readonly reason: RenderFailureReason;

  constructor(reason: RenderFailureReason, detail: string) {
    super(`The template ${detail}.`);
    this.name = 'RenderFailure';
    this.reason = reason;
  }
}
