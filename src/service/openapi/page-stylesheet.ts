// The stylesheet that all pages share: light and dark colours, type, links, visible focus. Pages add their own rules.
import { createHash } from 'node:crypto';

export const pageStylesheet = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f4f5f7, #14171c);
  --surface: light-dark(#ffffff, #1d2127);
  --line: light-dark(#d5d9e0, #363c46);
  --text: light-dark(#1a1f27, #e8eaed);
  --quiet: light-dark(#566070, #a5adb9);
  --accent: light-dark(#155e75, #67cfe8);
}
* { box-sizing: border-box; }
html { background: var(--ground); }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem;
  color: var(--text); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
a { color: var(--accent); text-underline-offset: .18em; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; overflow-wrap: anywhere; }
`;

/**
 * Returns the Content-Security-Policy of a page that has only this stylesheet and no scripts. `images` are the allowed
 * sources of images, and `forms` are the addresses to which the page may send forms.
 */
export function pagePolicy(styles: string, images = 'data:', forms = "'none'"): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(styles).digest('base64')}'`,
    `img-src ${images}`,
    "base-uri 'none'",
    `form-action ${forms}`,
    "frame-ancestors 'none'",
  ].join('; ');
}
