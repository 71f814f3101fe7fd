// Serves the static pages that `web/build.ts` builds: the applicant's page (`/apply`) and the console (`/console`). The
// files contain no personal data and no secrets, so anyone may load them.
import { existsSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Response } from 'express';
import { z } from 'zod';
import { anonymous, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { pagesDirectory } from './built-pages.ts';
import { type PageName, pageAddresses, pagePolicy } from './page.ts';

export interface PageRoutesOptions {
  pages: readonly PageName[];
  /** The folder with the built pages. The default is the output folder of the build. */
  directory?: string;
}

const headers = {
  'Content-Security-Policy': pagePolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
};

export function pageRoutes({ pages, directory = pagesDirectory }: PageRoutesOptions): Route[] {
  return pages.flatMap((name) => {
    const folder = join(directory, name);
    return [assetRoute(name, folder), ...pageAddresses[name].map((path) => addressRoute(path, folder))];
  });
}

// The name of an asset contains a hash of its content, so browsers may keep the asset forever.
function assetRoute(name: PageName, folder: string): Route {
  return route({
    method: 'get',
    path: `/${name}/assets/:file`,
    summary: 'A script or stylesheet of a page',
    guards: [anonymous],
    params: z.object({ file: z.string().regex(/^[\w-]+(?:\.[\w-]+)*\.(?:js|css|svg|png|woff2)$/) }),
    responses: { 200: { description: 'The file' }, 404: { description: 'No such file' } },
    handle: ({ params }, _request, response) =>
      send(response, {
        folder: join(folder, 'assets'),
        file: params.file,
        cache: 'public, max-age=31536000, immutable',
      }),
  });
}

function addressRoute(path: string, folder: string): Route {
  return route({
    method: 'get',
    path,
    summary: 'A page for people',
    guards: [anonymous],
    responses: { 200: { description: 'The page as HTML' } },
    handle: (_input, _request, response) => send(response, { folder, file: 'index.html', cache: 'no-cache' }),
  });
}

const encodings = { br: '.br', gzip: '.gz' } as const;

/**
 * Sends the smallest copy of the file that the client accepts. Express adds Last-Modified, and handles conditional
 * requests.
 */
async function send(response: Response, { folder, file, cache }: { folder: string; file: string; cache: string }) {
  const encoding = response.req.acceptsEncodings('br', 'gzip');
  const compressed = encoding === 'br' || encoding === 'gzip' ? encoding : undefined;
  const name =
    compressed && existsSync(join(folder, file + encodings[compressed])) ? file + encodings[compressed] : file;
  if (!existsSync(join(folder, name))) throw new Problem('not-found', 'No resource has this path.');
  response
    .type(extname(file))
    .set({ ...headers, 'Cache-Control': cache })
    .vary('Accept-Encoding');
  if (name !== file) response.set('Content-Encoding', compressed);
  await new Promise<void>((resolve) => {
    // Ignores errors, because the client may disconnect while the file is sent.
    response.sendFile(name, { root: folder, cacheControl: false }, () => resolve());
  });
}
