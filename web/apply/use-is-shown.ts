// Tells work that ends later whether the component that began it is still on the page.
import { useEffect, useRef } from 'preact/hooks';

/** Returns a reference that is true until the component is removed from the page. */
export function useIsShown(): { readonly current: boolean } {
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  return isShown;
}
