// The sign-in form of the embedded identity provider. It works without JavaScript, so that scripts can submit it.
import express from 'express';
import type { Provider } from 'oidc-provider';
import { html } from '../../src/service/openapi/html.ts';
import { type Page, pageHeaders, renderPage } from '../pages/layout.ts';
import type { Realm } from './realm.ts';

/**
 * Creates the routes of the sign-in form, below the realm's path. oidc-provider redirects the browser to the form, and
 * continues the sign-in after the form is submitted.
 */
export function createSignInRoutes(provider: Provider, realm: Realm): express.Router {
  const router = express.Router();
  router.get('/login-actions/authenticate/:uid', async (req, res) => {
    const interaction = await findInteraction(provider, req, res);
    if (!interaction) return sendPage(res.status(400), expiredPage());
    // All clients are first-party clients, so prompt=consent is granted without a page.
    if (interaction.prompt.name === 'consent') return provider.interactionFinished(req, res, { consent: {} });
    const hint = interaction.params.login_hint;
    sendPage(res, formPage(realm, { email: typeof hint === 'string' ? hint : '' }));
  });
  router.post(
    '/login-actions/authenticate/:uid',
    express.urlencoded({ extended: false, limit: '8kb' }),
    async (req, res) => {
      const interaction = await findInteraction(provider, req, res);
      if (!interaction) return sendPage(res.status(400), expiredPage());
      const form = readForm(req.body);
      if (form.action === 'cancel') {
        return provider.interactionFinished(req, res, {
          error: 'access_denied',
          error_description: 'The sign-in was cancelled.',
        });
      }
      const account = realm.authenticate(form.username, form.password);
      if (!account) return sendPage(res.status(401), formPage(realm, { email: form.username, refused: true }));
      await provider.interactionFinished(req, res, { login: { accountId: account.id, amr: ['pwd'] } });
    },
  );
  return router;
}

async function findInteraction(provider: Provider, req: express.Request, res: express.Response) {
  const interaction = await provider.interactionDetails(req, res).catch(() => undefined);
  return interaction?.uid === req.params.uid ? interaction : undefined;
}

function readForm(body: unknown): { username: string; password: string; action: string } {
  const fields = new Map(Object.entries(body && typeof body === 'object' ? body : {}));
  const text = (name: string) => {
    const value: unknown = fields.get(name);
    return typeof value === 'string' ? value : '';
  };
  return { username: text('username'), password: text('password'), action: text('action') };
}

function formPage(realm: Realm, { email, refused = false }: { email: string; refused?: boolean }): Page {
  return {
    title: refused ? 'Error: sign in' : 'Sign in',
    width: 'narrow',
    body: html`<main class="card">
<h1>Sign in</h1>
<p class="quiet">to the realm <strong>${realm.definition.name}</strong></p>
${refused && html`<p class="alarm" id="refused" role="alert">The email address or the password is wrong.</p>`}
<form method="post">
<label for="username">Email address</label>
<input id="username" name="username" type="email" autocomplete="username" required${!email && html` autofocus`} value="${email}"${refused && html` aria-describedby="refused"`}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${email !== '' && html` autofocus`}>
<div class="actions">
<button class="main" type="submit">Sign in</button>
<button type="submit" name="action" value="cancel" formnovalidate>Cancel</button>
</div>
</form>
</main>
<p class="quiet small note">This is the embedded identity provider of <code>npm start</code>. Use it to try Formgate, not for real accounts.</p>`,
  };
}

function expiredPage(): Page {
  return {
    title: 'The sign-in has expired',
    width: 'narrow',
    body: html`<main class="card"><h1>The sign-in has expired</h1>
<p>It was already completed, took too long, or was started in another browser. Go back to the page you came from and sign in again.</p></main>`,
  };
}

function sendPage(res: express.Response, page: Page): void {
  res.set(pageHeaders(page)).send(renderPage(page));
}
