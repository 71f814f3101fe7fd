// Renders the page of a failed sign-in or logout, without scripts. Names that tenants choose are escaped and shortened,
// and cannot change the direction of other text (<bdi>). The page shows nothing from the request except the request id.
import { html, type Markup, page } from '../../service/openapi/html.ts';
import type { Action } from './actions.ts';
import type { PageName } from './catalogue.ts';
import type { Logo, PageSettings } from './settings.ts';
import { type Language, languages, sharedWords } from './texts.ts';

export interface FailurePage {
  name: PageName;
  language: Language;
  action: Action;
  requestId: string;
  /** Seconds until the next attempt may succeed. If undefined, the page does not mention a wait. */
  wait?: number | undefined;
  /** Name of the client. Like `tenant`, undefined if the request failed before the name was known. */
  client?: string | undefined;
  tenant?: string | undefined;
}

const longestName = 100;

export function renderFailurePage(shown: FailurePage, settings: PageSettings, styles: string): string {
  const { name, language } = shown;
  const other = languages.find((one) => one !== language) ?? language;
  const heading = settings.name?.[language];
  const support = settings.support?.[language];
  const { title } = settings.texts[name][language];
  const body = html`${hasHeader(settings, language) && html`<header>${settings.logo && logoImage(settings.logo, language)}${heading && html`<span>${heading}</span>`}</header>`}
<main>
<h1>${title}</h1>
${message(shown, settings, language)}
${references(shown)}
<details lang="${other}"><summary>${sharedWords[other].inThisLanguage}</summary>
<h2>${settings.texts[name][other].title}</h2>
${message(shown, settings, other)}
${settings.support?.[other] && html`<p>${settings.support[other]}</p>`}</details>
</main>
${support && html`<footer>${support}</footer>`}`;
  return page({ title: heading === undefined ? title : `${title} – ${heading}`, language, styles, body });
}

function hasHeader({ logo, name }: PageSettings, language: Language): boolean {
  return logo !== undefined || name?.[language] !== undefined;
}

function logoImage({ src, darkSrc, alt }: Logo, language: Language): Markup {
  const dark = darkSrc !== undefined && html`<source media="(prefers-color-scheme: dark)" srcset="${darkSrc}">`;
  return html`<picture>${dark}<img src="${src}" alt="${alt[language]}"></picture>`;
}

function message({ name, action, wait }: FailurePage, { texts }: PageSettings, language: Language): Markup {
  const { happened, advice } = texts[name][language];
  const words = sharedWords[language];
  const waiting = wait !== undefined && html` ${words.wait(Math.max(1, Math.ceil(wait / 60)))}`;
  return html`<p>${happened}</p>
<p>${advice}${waiting}</p>
<p class="action"><a href="${action.href}">${words[action.label]}</a></p>`;
}

function references({ client, tenant, requestId, language }: FailurePage): Markup {
  const words = sharedWords[language];
  return html`<dl>
${client !== undefined && html`<div><dt>${words.site}</dt><dd><bdi>${shorten(client)}</bdi></dd></div>`}
${tenant !== undefined && html`<div><dt>${words.organization}</dt><dd><bdi>${shorten(tenant)}</bdi></dd></div>`}
<div><dt>${words.reference}</dt><dd><code>${requestId}</code></dd></div>
</dl>`;
}

function shorten(name: string): string {
  const characters = [...name];
  return characters.length > longestName ? `${characters.slice(0, longestName).join('')}…` : name;
}
