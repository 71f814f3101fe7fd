// A wait that a notification ends early. A notification that arrives before the wait also ends it.
export function createSignal() {
  let notified = false;
  let end: (() => void) | undefined;
  return {
    notify() {
      notified = true;
      end?.();
    },
    async wait(ms: number): Promise<void> {
      if (!notified && ms > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        end = resolve;
        const timer = setTimeout(resolve, ms);
        await promise;
        clearTimeout(timer);
      }
      notified = false;
    },
  };
}
