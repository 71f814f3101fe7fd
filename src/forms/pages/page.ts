// The pages that people open in a browser: their names, their paths, and which resources they may load.

/** `apply` is for applicants, `console` for administrators. Each page is served below `/apply` or `/console`. */
export const pageNames = ['apply', 'console'] as const;
export type PageName = (typeof pageNames)[number];

/** The paths at which a page is served. The page's scripts choose the view for each path. */
export const pageAddresses: Record<PageName, readonly string[]> = {
  apply: ['/apply', '/apply/:tenant/:definition'],
  console: ['/console', '/console/:tenant', '/console/:tenant/*view'],
};

/** The Content-Security-Policy of the pages. It allows only files of this origin, and nothing inline. */
export const pagePolicy: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
