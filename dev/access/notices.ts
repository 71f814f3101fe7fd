// Pages of the embedded identity provider for signing out, and for errors that must not be sent to a client.
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider';
import { html, Markup } from '../../src/service/openapi/html.ts';
import { type Page, pageHeaders, renderPage } from '../pages/layout.ts';

/**
 * Sends the sign-out page. If the client sent an ID token hint, a script submits the form, and the button is only for
 * browsers without JavaScript. Otherwise, the page asks for confirmation. `form` is the library's form with its XSRF
 * token.
 */
export function askToLogOut(ctx: KoaContextWithOIDC, form: string): void {
  const isProven = ctx.oidc.entities.IdTokenHint !== undefined;
  const submit = "document.getElementById('yes').click();";
  sendPage(ctx, {
    title: 'Sign out',
    width: 'narrow',
    body: html`<main class="card">
<h1>${isProven ? 'Signing you out…' : 'Sign out?'}</h1>
<p class="quiet">${isProven ? 'If nothing happens, press the button.' : 'You stay signed in with this account until you sign out.'}</p>
${new Markup(form)}
<div class="actions">
<button class="main" id="yes" type="submit" form="op.logoutForm" name="logout" value="yes">Sign out</button>
${!isProven && html`<button type="submit" form="op.logoutForm">Stay signed in</button>`}
</div></main>`,
    ...(isProven && { script: submit }),
  });
}

export function confirmLogOut(ctx: KoaContextWithOIDC): void {
  sendPage(ctx, {
    title: 'Signed out',
    width: 'narrow',
    body: html`<main class="card"><h1>You are signed out</h1><p class="quiet">You can close this page.</p></main>`,
  });
}

/** Shows an error that cannot be sent to the client, because the redirect URI might belong to somebody else. */
export function showError(ctx: KoaContextWithOIDC, out: ErrorOut): void {
  sendPage(ctx, {
    title: 'Sign-in is not possible',
    width: 'narrow',
    body: html`<main class="card"><h1>Sign-in is not possible</h1>
<p>${out.error_description ?? 'The identity provider rejected the request.'}</p>
<p class="quiet small">Error: <code>${out.error}</code></p></main>`,
  });
}

function sendPage(ctx: KoaContextWithOIDC, page: Page): void {
  ctx.set(pageHeaders(page));
  ctx.type = 'html';
  ctx.body = renderPage(page);
}
