// Renders the page /docs/try from the OpenAPI document: a form for each call. The page's script sends the calls through
// the session that the token handler keeps for this browser, so that users need not paste a token into the page.
import { type Call, callsOf, type Parameter, type ShownDocument } from './docs-page.ts';
import { docsStylesheet } from './docs-stylesheet.ts';
import { exampleOf } from './examples.ts';
import { html, type Markup, page, prose } from './html.ts';
import { pagePolicy } from './page-stylesheet.ts';
import type { JsonSchema } from './schema-markup.ts';

const styles = `${docsStylesheet}
label { display: block; font-weight: 600; margin: .75rem 0 .25rem; }
input, textarea { width: 100%; max-width: 45rem; padding: .5rem .65rem; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: 8px; }
textarea { min-height: 10rem; font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; }
button { margin: 1rem 0; padding: .5rem 1rem; font: inherit; font-weight: 600; color: var(--accent); background: transparent; border: 1px solid var(--accent); border-radius: 8px; cursor: pointer; }
button[aria-disabled="true"] { opacity: .7; cursor: progress; }
summary { cursor: pointer; overflow-wrap: anywhere; }
[hidden] { display: none; }
@media (min-width: 64rem) { body { grid-template-columns: minmax(0, 1fr); } }
`;

/** The Content-Security-Policy of the page. It allows only scripts of this service, and requests to this origin. */
export const tryPolicy = `${pagePolicy(styles)}; script-src 'self'; connect-src 'self'`;

/** Renders the page. The link to its script is relative, like the links of `/docs`. */
export function tryPage(document: ShownDocument): string {
  const { info, components } = document;
  const calls = callsOf(document).filter(({ operation }) => operation.security?.some((one) => 'bearer' in one));
  const body = html`<a class="skip" href="#calls">Skip to the calls</a>
<header>
<h1>${info.title}: try calls</h1>
<p>The calls run as you, with the session of the console. They change real data. Only calls of this service can be tried here. <a href="../docs">All calls are described here.</a></p>
<p id="status" role="status">Loading …</p>
<form id="session"><div id="who" hidden><label for="tenant">Tenant</label><input id="tenant" name="tenant" required></div>
<button id="sign-in" hidden>Sign in</button> <button id="sign-out" type="button" hidden>Sign out</button></form>
<noscript><p>This page needs JavaScript. The commands in the <a href="../docs">description</a> do not.</p></noscript>
</header>
<main id="calls">
<h2>Calls</h2>
${calls.map((call) => callForm(call, components?.schemas ?? {}))}
</main>
<script type="module" src="try.js"></script>`;
  return page({ title: `${info.title}: try calls`, styles, body });
}

function callForm({ id, method, path, operation }: Call, schemas: Record<string, JsonSchema>): Markup {
  const { summary, parameters = [], requestBody } = operation;
  const [body] = Object.entries(requestBody?.content ?? {});
  return html`<article><details><summary><span class="method">${method}</span> <code>${path}</code> <span class="quiet">${summary}</span></summary>
<form data-method="${method}" data-path="${path}">
${parameters.map((parameter) => field(parameter, id))}
${body && html`<label for="${id}-body">Body (${body[0]})</label><textarea id="${id}-body" name="body" data-type="${body[0]}" spellcheck="false">${bodyText(body, schemas)}</textarea>`}
<button>Send</button>
<p role="status"></p><pre tabindex="0" role="region" aria-label="Response of ${method} ${path}" hidden></pre>
</form></details></article>
`;
}

function field({ name, in: location, required, description }: Parameter, id: string): Markup {
  const key = `${id}-${location}-${name}`;
  return html`<label for="${key}">${name} <span class="quiet">(${location}${!required && ', optional'})</span></label>
${description !== undefined && html`<p class="quiet" id="${key}-about">${prose(description)}</p>`}
<input id="${key}" name="${name}" data-in="${location}" autocomplete="off"${required && html` required`}${description !== undefined && html` aria-describedby="${key}-about"`}>`;
}

function bodyText([type, { schema = true }]: [string, { schema?: JsonSchema }], schemas: Record<string, JsonSchema>) {
  const value = exampleOf(schema, schemas);
  return /json/.test(type) ? JSON.stringify(value, undefined, 2) : String(value);
}
