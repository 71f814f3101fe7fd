// Tells that an action takes long, so that the page can say that it is still working.
import { useEffect, useState } from 'preact/hooks';

/** Milliseconds. Below that, a text would only flicker. */
const patience = 1_000;

/** Returns true while `isBusy` has been true for more than a second. */
export function useSlow(isBusy: boolean): boolean {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    setSlow(false);
    if (!isBusy) return undefined;
    const timer = setTimeout(() => setSlow(true), patience);
    return () => clearTimeout(timer);
  }, [isBusy]);
  return isBusy && isSlow;
}
