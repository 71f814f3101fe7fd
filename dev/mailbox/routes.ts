// The mailbox over HTTP: a page to read in, and JSON for scripts. A message's HTML is shown in a sandbox, where it can
// run nothing, load nothing and send nothing.
import express from 'express';
import { type Page, pageHeaders, renderPage } from '../pages/layout.ts';
import { summary } from './message.ts';
import type { MessageStore } from './message-store.ts';
import { listPage, messagePage, missingPage } from './pages.ts';

const sandbox = 'allow-popups allow-popups-to-escape-sandbox';

/** To be mounted at `/mailbox`. */
export function createMailboxRoutes(messages: MessageStore): express.Router {
  const router = express.Router();
  router.get('/', (_req, res) => answer(res, listPage(messages.all()), ["connect-src 'self'"]));
  router
    .route('/messages')
    .get((_req, res) => void res.set('Cache-Control', 'no-store').json(messages.all().map(summary)))
    .delete(async (_req, res) => {
      await messages.clear();
      res.status(204).end();
    });
  router.get('/:id', (req, res) => {
    const message = messages.find(req.params.id);
    if (message) answer(res, messagePage(message), ["frame-src 'self'"]);
    else answer(res.status(404), missingPage());
  });
  router.get('/:id/html', (req, res) => {
    const message = messages.find(req.params.id);
    res.set({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `sandbox ${sandbox}; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'`,
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
    });
    // Links open in a tab of their own: in the frame they would lead nowhere.
    res.status(message?.html === undefined ? 404 : 200).send(`<base target="_blank">${message?.html ?? ''}`);
  });
  return router;
}

function answer(res: express.Response, page: Page, policy: string[] = []): void {
  res.set(pageHeaders(page, policy)).send(renderPage(page));
}
