// Moves the time of a process, so that the data of an old dump is as young as when it was written. Replaces only
// `Date`, because all code of this project reads the time from `Date`. The moved time keeps running.

/** Adds `milliseconds` to the time of the machine. Returns a function that restores the machine's time. */
export function shiftTime(milliseconds: number): () => void {
  const real = globalThis.Date;
  const now = () => real.now() + milliseconds;
  // Use a proxy and not a subclass, so that dates from before the shift are still instances of `Date`.
  globalThis.Date = new Proxy(real, {
    construct: (target, args) => Reflect.construct(target, args.length > 0 ? args : [now()]),
    apply: () => new real(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
  return () => {
    globalThis.Date = real;
  };
}
