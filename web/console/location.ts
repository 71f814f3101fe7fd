// A small router: the address determines what is shown. Links are ordinary HTML links, but following one does not load
// the page again.
import { useLayoutEffect, useState } from 'preact/hooks';

const root = '/console';
const moved = new EventTarget();

export interface Place {
  /** Realm or name of the tenant; empty if the address has none. */
  tenant: string;
  /** Decoded parts of the path below the tenant. */
  parts: string[];
  query: URLSearchParams;
}

/** Returns the place of the current address. Unlike `usePlace`, it can be called at any time. */
export function currentPlace(): Place {
  const [tenant = '', ...parts] = location.pathname.slice(root.length).split('/').filter(Boolean).map(decode);
  return { tenant, parts, query: new URLSearchParams(location.search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function addressOfPage(tenant: string, parts: readonly string[] = [], query?: URLSearchParams): string {
  const path = [root, ...[tenant, ...parts].filter(Boolean).map(encodeURIComponent)].join('/');
  return query && query.size > 0 ? `${path}?${query}` : path;
}

/** Returns the path and query of the current page, to which a sign-in returns. */
export function currentAddress(): string {
  return location.pathname + location.search;
}

export function go(address: string, { replace = false } = {}): void {
  if (address === currentAddress()) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  moved.dispatchEvent(new Event('moved'));
}

/** Returns the current place. The component renders again when the place changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(currentPlace);
  // `useEffect` would run only after the page is painted, and would miss a change of the place before that.
  useLayoutEffect(() => {
    const update = () => setPlace(currentPlace());
    moved.addEventListener('moved', update);
    addEventListener('popstate', update);
    return () => {
      moved.removeEventListener('moved', update);
      removeEventListener('popstate', update);
    };
  }, []);
  return place;
}

/**
 * Follows links of the console without a page load. The browser still handles clicks with a modifier key, downloads,
 * and links with a `target`.
 */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute('download')) return;
    const { origin, pathname, search, hash } = new URL(link.href);
    const isOurs = origin === location.origin && (pathname === root || pathname.startsWith(`${root}/`));
    if (!isOurs || hash !== '') return;
    event.preventDefault();
    go(pathname + search);
  });
}
