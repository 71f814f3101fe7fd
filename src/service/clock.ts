// The one source of time. Everything that needs "now" is handed a Clock, so that a test fakes time and nothing else.

/** Answers the present moment. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();
