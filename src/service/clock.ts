// The source of time. Code that needs the current time gets a Clock, so that tests can control it.

export type Clock = () => Date;

export const systemClock: Clock = () => new Date();
