// The source of time. Code that needs the current time gets a Clock, so that tests can control it.

export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/** Returns the time that is so many milliseconds later. */
export const later = (time: Date, milliseconds: number): Date => new Date(time.getTime() + milliseconds);

/** Returns the time that is so many milliseconds earlier. */
export const earlier = (time: Date, milliseconds: number): Date => new Date(time.getTime() - milliseconds);
