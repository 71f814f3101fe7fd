// Moves the time of a process, so that the stores of an old dump are as young as when they were written. Only `Date` is
// changed, because everything in this project reads the time from it. The moved time keeps running.

/** `milliseconds` are added to the time of the machine. The returned function restores the machine's time. */
export function shiftTime(milliseconds: number): () => void {
  const real = globalThis.Date;
  const now = () => real.now() + milliseconds;
  // Uses a proxy, not a class, so that dates from before the shift are still instances of `Date`.
  globalThis.Date = new Proxy(real, {
    construct: (target, args) => Reflect.construct(target, args.length > 0 ? args : [now()]),
    apply: () => new real(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
  return () => {
    globalThis.Date = real;
  };
}
