// The page at `/`: what runs here, where, and what to try first.
import { html, type Markup } from '../src/service/openapi/html.ts';
import type { Page } from './pages/layout.ts';

const places: [href: string, name: string, text: string][] = [
  ['/docs', 'API of the form service', 'Every call, described by the schemas that validate it.'],
  ['/token-handler/docs', 'API of the token handler', 'Sign-in, sessions, targets and clients, described likewise.'],
  ['/mailbox', 'Mailbox', 'Every mail that is sent here ends up on this page: codes, notices, warnings.'],
  ['/openapi.json', 'OpenAPI of the form service', 'The same description for tools.'],
  ['/token-handler/openapi.json', 'OpenAPI of the token handler', 'The same description for tools.'],
  ['/health', 'Health', 'Which parts are ready, as JSON.'],
];

export function homePage({ publicUrl, parts }: { publicUrl: string; parts: Record<string, boolean> }): Page {
  const ready = Object.values(parts).every(Boolean);
  return {
    title: 'Formgate',
    body: html`<main>
<h1>Formgate</h1>
<p class="quiet">Forms for applicants without an account, and a backend that keeps the tokens of light frontends. This is the whole of it, running on your machine.</p>
<p><span class="dot${ready && ' good'}" aria-hidden="true"></span>${ready ? 'Everything is ready.' : 'Some parts are not ready yet:'}
${!ready && waiting(parts)}</p>
<h2>Try it</h2>
<div class="card"><p>In another terminal: a draft from its creation to its submission, with the code taken from the mailbox; then a sign-in through the token handler, a call with the session, and a logout.</p>
<pre class="command"><code>npm run demo</code></pre></div>
<h2>Look around</h2>
<ul class="grid">${places.map(([href, name, text]) => html`<li class="card"><a href="${href}">${name}</a><p class="quiet small">${text}</p></li>`)}</ul>
<h2>Accounts</h2>
<div class="card scroll" tabindex="0" role="region" aria-label="Accounts"><table>
<thead><tr><th scope="col">Who</th><th scope="col">Name</th><th scope="col">Password or secret</th><th scope="col">May</th></tr></thead>
<tbody>
${account('Person', 'alice@example.com', 'alice', 'apply')}
${account('Person', 'admin@example.com', 'admin', 'administer everything')}
${account('Service account', 'demo-intake', 'demo-intake-secret', 'draft and submit for people without an account')}
${account('Service account', 'demo-admin', 'demo-admin-secret', 'administer forms, configuration and clients')}
</tbody></table></div>
<h2>Addresses</h2>
<div class="card"><dl class="small">
<dt>Form service</dt><dd><code>${publicUrl}/form/v1</code></dd>
<dt>Token handler</dt><dd><code>${publicUrl}/token-handler</code></dd>
<dt>Access service</dt><dd><code>${publicUrl}/auth/realms/demo</code></dd>
<dt>Registration token</dt><dd><code>demo-registration-token</code></dd>
<dt>Configuration</dt><dd><code>${publicUrl}/configuration/v2</code></dd>
<dt>Directory</dt><dd><code>${publicUrl}/directory/v2</code></dd>
<dt>Tenants</dt><dd><code>${publicUrl}/api/tenant/v2</code></dd>
<dt>Notifications</dt><dd><code>${publicUrl}/subscription/v1</code></dd>
<dt>Events</dt><dd><code>${publicUrl}/event/v1</code></dd>
</dl></div>
</main>`,
  };
}

function waiting(parts: Record<string, boolean>): Markup {
  const names = Object.keys(parts).filter((name) => !parts[name]);
  return html`<strong>${names.join(', ')}</strong>. Reload the page in a moment.`;
}

function account(kind: string, name: string, secret: string, may: string): Markup {
  return html`<tr><td>${kind}</td><td><code>${name}</code></td><td><code>${secret}</code></td><td>${may}</td></tr>`;
}
