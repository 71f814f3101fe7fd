// The pages of the mailbox: the list, one message, and the page for a missing message.
import { html } from '../../src/service/openapi/html.ts';
import type { Page } from '../pages/layout.ts';
import type { Message } from './message.ts';

// The script of the list page. It polls every two seconds. To avoid disturbing a reader, it changes the list only if
// the newest message is a different one, or if the mailbox was emptied.
const refresh = `
const newest = () => document.querySelector('[data-id]')?.dataset.id;
const list = () => document.getElementById('messages');
setInterval(async () => {
  if (document.hidden) return;
  try {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html');
    if (page.querySelector('[data-id]')?.dataset.id === newest()) return;
    list().replaceWith(page.getElementById('messages'));
    document.getElementById('count').textContent = page.getElementById('count').textContent;
  } catch { /* the server is restarting: the next poll retries */ }
}, 2000);
const clear = document.getElementById('clear');
clear.hidden = false;
clear.addEventListener('click', async () => {
  await fetch('/mailbox/messages', { method: 'DELETE' });
  location.reload();
});
`;

/** Renders the messages that a query found; `demo` is the command that an empty mailbox suggests. */
export function listPage(messages: readonly Message[], { demo, query }: { demo: string; query: string }): Page {
  const count = messages.length === 1 ? '1 message' : `${messages.length} messages`;
  return {
    title: 'Mailbox',
    body: html`<nav aria-label="Breadcrumb" class="small"><a href="/">Formgate</a></nav>
<main>
<div class="head"><div><h1>Mailbox</h1>
<p class="quiet">All mail that Formgate sends on this machine. <span id="count" role="status">${count}</span></p></div>
<button id="clear" type="button" hidden>Empty the mailbox</button></div>
<form role="search" class="search"><label for="q">Search subject, recipient and text</label>
<div class="actions"><input id="q" type="search" name="q" value="${query}"><button>Search</button>${query !== '' && html` <a href="/mailbox">Show all</a>`}</div></form>
<div id="messages">${
      messages.length === 0 && query !== ''
        ? html`<div class="card"><p>No mail contains “${query}”.</p></div>`
        : messages.length === 0
          ? html`<div class="card"><p>No mail yet.</p>
<p class="quiet">Run <code>${demo}</code> in another terminal. The code that it sends arrives here.</p></div>`
          : html`<ul class="card list">${messages.map(row)}</ul>`
    }</div>
<noscript><p class="quiet small">Reload the page to see new messages.</p></noscript>
</main>`,
    script: refresh,
  };
}

function row(message: Message) {
  return html`<li><a href="/mailbox/${message.id}" data-id="${message.id}">
<strong>${message.subject || '(no subject)'}</strong><time class="quiet small" datetime="${message.received}">${readableTime(message.received)}</time>
<span class="line small">To ${message.to}</span>
<span class="line quiet small">${message.text.slice(0, 200)}</span></a></li>`;
}

export function messagePage(message: Message): Page {
  return {
    title: `${message.subject || '(no subject)'} – Mailbox`,
    body: html`<nav aria-label="Breadcrumb" class="small"><a href="/">Formgate</a> / <a href="/mailbox">Mailbox</a></nav>
<main>
<h1>${message.subject || '(no subject)'}</h1>
<dl class="small"><dt>From</dt><dd>${message.from}</dd><dt>To</dt><dd>${message.to}</dd>
<dt>Received</dt><dd><time datetime="${message.received}">${readableTime(message.received)}</time></dd></dl>
${
  message.html !== undefined &&
  html`<iframe title="HTML version of the message" sandbox="allow-popups allow-popups-to-escape-sandbox" src="/mailbox/${message.id}/html"></iframe>
<h2>Plain text</h2>`
}
<div class="card"><pre>${message.text}</pre></div>
${message.source !== undefined && html`<h2>Source</h2><details class="card"><summary>Headers and parts as received</summary><pre tabindex="0" role="region" aria-label="Source">${message.source}</pre></details>`}
</main>`,
  };
}

export function missingPage(): Page {
  return {
    title: 'Message not found',
    body: html`<main class="card"><h1>Message not found</h1><p>It may have been deleted. <a href="/mailbox">Back to the mailbox</a></p></main>`,
  };
}

function readableTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}
