// Keeps the current page of the form in the URL fragment, so that the browser's back button returns to the previous
// page.
import { useLayoutEffect, useState } from 'preact/hooks';
import { type Fragment, fragmentOf, hashOf } from './address.ts';

export function useFragment(): [Fragment, (next: Fragment, how?: 'push' | 'replace') => void] {
  const [fragment, setFragment] = useState(() => fragmentOf(location.hash));
  // `useEffect` would run only after the page is painted. A change of the address before that would be missed.
  useLayoutEffect(() => {
    const read = () => setFragment(fragmentOf(location.hash));
    window.addEventListener('popstate', read);
    return () => window.removeEventListener('popstate', read);
  }, []);
  const go = (next: Fragment, how: 'push' | 'replace' = 'push') => {
    const url = location.pathname + hashOf(next);
    if (how === 'push') history.pushState(null, '', url);
    else history.replaceState(null, '', url);
    setFragment(next);
  };
  return [fragment, go];
}
