// The mailbox over HTTP: pages for people, JSON for scripts. The HTML of a message is shown in a sandbox that runs no
// scripts, loads nothing and submits no forms.
import express from 'express';
import { type Page, pageHeaders, renderPage } from '../pages/layout.ts';
import { matches, summary } from './message.ts';
import type { MessageStore } from './message-store.ts';
import { listPage, messagePage, missingPage } from './pages.ts';

const sandbox = 'allow-popups allow-popups-to-escape-sandbox';

/** Creates the routes for the path `/mailbox`. `demo` is the command that an empty mailbox suggests. */
export function createMailboxRoutes(messages: MessageStore, demo = 'npm run demo'): express.Router {
  const router = express.Router();
  router.get('/', (req, res) => {
    const query = typeof req.query.q === 'string' ? req.query.q.trim() : '';
    const found = messages.all().filter((message) => matches(message, query));
    sendPage(res, listPage(found, { demo, query }), ["connect-src 'self'"]);
  });
  router
    .route('/messages')
    .get((_req, res) => void res.set('Cache-Control', 'no-store').json(messages.all().map(summary)))
    .delete(async (_req, res) => {
      await messages.clear();
      res.status(204).end();
    });
  router.get('/:id', (req, res) => {
    const message = messages.find(req.params.id);
    if (message) sendPage(res, messagePage(message), ["frame-src 'self'"]);
    else sendPage(res.status(404), missingPage());
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
    // Links open in a new tab, because the page's Content-Security-Policy does not allow other sites in the frame.
    res.status(message?.html === undefined ? 404 : 200).send(`<base target="_blank">${message?.html ?? ''}`);
  });
  return router;
}

function sendPage(res: express.Response, page: Page, policy: string[] = []): void {
  res.set(pageHeaders(page, policy)).send(renderPage(page));
}
