// Renders the pages of `npm start`. All pages share one layout and one stylesheet; a page may add one script. The
// Content-Security-Policy of a page allows no other stylesheet or script. Values go through `html`, which escapes them.
import { createHash } from 'node:crypto';
import { html, Markup, page } from '../../src/service/openapi/html.ts';
import { stylesheet } from './stylesheet.ts';

export interface Page {
  title: string;
  body: Markup;
  /** Width of the page: `narrow` for one HTML form or message, `wide` for lists. */
  width?: 'narrow' | 'wide';
  /** Text of an inline script. It must not contain values from requests. */
  script?: string;
}

export function renderPage({ title, body, script, width = 'wide' }: Page): string {
  const content = html`${body}
${script !== undefined && html`<script>${new Markup(script)}</script>`}`;
  return page({ title, styles: stylesheet, body: content, bodyClass: width });
}

/**
 * Returns the Content-Security-Policy of a page, which allows only the page's stylesheet and script. The policy has no
 * `form-action`: browsers apply `form-action` to redirects after a form submission too, and these redirects lead to the
 * clients' sites.
 */
function contentSecurityPolicy({ script: text }: Pick<Page, 'script'>, more: string[] = []): string {
  const script = text === undefined ? "'none'" : hashSource(text);
  return [
    "default-src 'none'",
    `style-src ${hashSource(stylesheet)}`,
    `script-src ${script}`,
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'self'",
    ...more,
  ].join('; ');
}

function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Returns the response headers of a page. `more` adds directives to its Content-Security-Policy. */
export function pageHeaders(shown: Pick<Page, 'script'>, more: string[] = []): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': contentSecurityPolicy(shown, more),
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
}
