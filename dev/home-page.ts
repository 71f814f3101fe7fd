// Renders the start page, `/`: the addresses of the components, the accounts, and the first steps to try.
import { html, type Markup } from '../src/service/openapi/html.ts';
import { demoCommand } from './options.ts';
import type { Page } from './pages/layout.ts';

const places: [href: string, name: string, text: string][] = [
  ['/docs', 'API of the form service', 'Every operation, described by the schemas that validate its requests.'],
  ['/docs/try?tenant=demo', 'Try calls', 'Send calls to the form service with the session of the console.'],
  ['/token-handler/docs', 'API of the token handler', 'Sign-in, sessions, targets and clients.'],
  ['/mailbox', 'Mailbox', 'Every mail that Formgate sends here: codes, notices, warnings.'],
  ['/openapi.json', 'OpenAPI of the form service', 'The API description for tools.'],
  ['/token-handler/openapi.json', 'OpenAPI of the token handler', 'The API description for tools.'],
  ['/health', 'Health', 'Which components are ready, as JSON.'],
];

export function homePage({ publicUrl, parts }: { publicUrl: string; parts: Record<string, boolean> }): Page {
  const ready = Object.values(parts).every(Boolean);
  return {
    title: 'Formgate',
    body: html`<main>
<h1>Formgate</h1>
<p class="quiet">Formgate lets applicants complete forms without an account, and gives single-page apps a backend-for-frontend that keeps tokens out of the browser. All of it runs on this machine.</p>
<p><span class="dot${ready && ' good'}" aria-hidden="true"></span>${ready ? 'Everything is ready.' : 'Not ready yet:'}
${!ready && waiting(parts)}</p>
<h2>Try it</h2>
<div class="card"><p>Enter this command in another terminal. It takes a draft from creation to submission, with the code from the mailbox. Then it signs in through the token handler, calls the form service with the session, and signs out.</p>
<pre class="command"><code>${demoCommand(publicUrl)}</code></pre></div>
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
<dt>Identity provider</dt><dd><code>${publicUrl}/auth/realms/demo</code></dd>
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
