// Renders the pages of `npm start`: one layout, one stylesheet, and no script unless a page has its own. The policy of
// each page allows only these. Values go through `html`, which escapes them.
import { createHash } from 'node:crypto';
import { html, Markup } from '../../src/service/openapi/html.ts';
import { stylesheet } from './stylesheet.ts';

export interface Page {
  title: string;
  body: Markup;
  /** `narrow` for one form, `wide` for lists. */
  width?: 'narrow' | 'wide';
  /** Text of an inline script. It must not contain values from requests. */
  script?: string;
}

export function renderPage(page: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title}</title>
<link rel="icon" href="data:,">
<style>${new Markup(stylesheet)}</style>
</head>
<body class="${page.width ?? 'wide'}">
${page.body}
${page.script !== undefined && html`<script>${new Markup(page.script)}</script>`}
</body>
</html>`.text;
}

/**
 * The Content-Security-Policy of a page: allows its stylesheet and its script only. It has no `form-action`, because
 * browsers also apply that to the redirects after a form, which lead to the clients' sites.
 */
function contentSecurityPolicy(page: Pick<Page, 'script'>, more: string[] = []): string {
  const script = page.script === undefined ? "'none'" : hashSource(page.script);
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

/** The response headers of a page. `more`: further directives of its Content-Security-Policy. */
export function pageHeaders(page: Pick<Page, 'script'>, more: string[] = []): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': contentSecurityPolicy(page, more),
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
}
