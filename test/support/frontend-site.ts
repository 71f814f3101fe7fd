// The site of a frontend: it serves static files, and forwards `/token-handler` to the token handler as a reverse
// proxy.
import { extname } from 'node:path';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { listen } from '../../dev/listen.ts';

export interface FrontendSite {
  /** Origin of the site. */
  url: string;
  /** Sets the address of the token handler. */
  forwardTo(tokenHandler: string): void;
  close(): Promise<void>;
}

/** Content-Security-Policy of the pages. A frontend's policy needs no exceptions for the token handler. */
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'self'";

/**
 * Starts the site. `files` maps paths to texts. A path may end in `*`. A path without a file name extension is served
 * as HTML. `others` maps path prefixes to the URLs of other servers.
 */
export async function startFrontendSite(
  files: Record<string, string>,
  others: Record<string, string> = {},
): Promise<FrontendSite> {
  const app = express();
  let target = '';
  app.use(
    createProxyMiddleware({
      pathFilter: '/token-handler/',
      router: () => target,
      pathRewrite: { '^/token-handler': '/token-handler/v1' },
      xfwd: true,
      changeOrigin: false,
    }),
  );
  for (const [pathFilter, url] of Object.entries(others)) app.use(createProxyMiddleware({ pathFilter, target: url }));
  app.use((request, response) => {
    const found = Object.entries(files).find(([path]) =>
      path.endsWith('*') ? request.path.startsWith(path.slice(0, -1)) : request.path === path,
    );
    if (!found) return void response.status(404).end();
    response
      .set('Content-Security-Policy', policy)
      .type(extname(found[0]) || 'html')
      .send(found[1]);
  });
  const listening = await listen(app);
  return {
    url: `http://127.0.0.1:${listening.port}`,
    forwardTo: (url) => {
      target = url;
    },
    close: () => listening.close(),
  };
}
