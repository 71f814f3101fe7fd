// Serves the page /docs/try and its script, which `web/build.ts` builds from web/try. Anyone may load them, because
// neither contains data or secrets.
import { readFile } from 'node:fs/promises';
import { anonymous, type Route, route } from '../http/http-app.ts';
import { sendShared } from '../http/request-context.ts';
import { tryPolicy } from './try-page.ts';

/** `script` is the path of the script's file. `page` returns the page. */
export function tryRoutes(script: string, page: () => Buffer): Route[] {
  return [
    route({
      method: 'get',
      path: '/docs/try',
      summary: 'A page for trying calls with the session of the console',
      guards: [anonymous],
      responses: { 200: { description: 'HTML' } },
      handle(_input, _request, response) {
        response.set({ 'Content-Security-Policy': tryPolicy, 'Referrer-Policy': 'no-referrer' });
        response.set({ 'Cross-Origin-Opener-Policy': 'same-origin', 'Cache-Control': 'no-cache' });
        sendShared(response, 'text/html', page());
      },
    }),
    route({
      method: 'get',
      path: '/docs/try.js',
      summary: 'The script of the page for trying calls',
      guards: [anonymous],
      responses: { 200: { description: 'A script' } },
      async handle(_input, _request, response) {
        response
          .set('Cache-Control', 'no-cache')
          .type('text/javascript')
          .send(await readFile(script, 'utf8'));
      },
    }),
  ];
}
