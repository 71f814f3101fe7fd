// The pages behind the links of the warning mail: plain HTML without scripts. They contain nothing about the form
// except the day on which it will be locked.
import type { Request, Response } from 'express';
import type { Problem } from '../../service/http/problem.ts';
import type { ProblemContent } from '../../service/http/problem-handler.ts';
import { html, type Markup, page } from '../../service/openapi/html.ts';
import { pagePolicy, pageStylesheet } from '../../service/openapi/page-stylesheet.ts';
import type { Language } from '../forms/form.ts';
import { type NoticeTexts, noticeTexts } from './notice-texts.ts';

export const noticePath = '/apply/forms/:formId';

const stylesheet = `${pageStylesheet}body { max-width: 40rem; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
main { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 1.5rem; }
form { margin: 1.25rem 0 0; }
label { display: block; font-weight: 600; margin: 0 0 .3rem; }
input { font: inherit; width: 12rem; max-width: 100%; padding: .55rem .7rem; color: var(--text);
  background: var(--surface); border: 2px solid var(--quiet); border-radius: 4px; margin: 0 0 1rem; }
button { font: inherit; font-weight: 600; padding: .65rem 1.1rem; border: 2px solid var(--accent); border-radius: 6px;
  background: var(--accent); color: var(--ground); cursor: pointer; }
button.second { background: transparent; color: var(--accent); }
nav { margin: 0 0 1rem; text-align: right; }
details { margin: 1.5rem 0 0; }
summary { color: var(--accent); cursor: pointer; margin: 0 0 .75rem; }
details h2 { font-size: 1.2rem; }
.error { border-left: 5px solid var(--danger); padding: 0 0 0 1rem; }
.error, .error a { color: var(--danger); font-weight: 600; }
:root { --danger: light-dark(#a3161d, #ff9c94); }
`;

const headers = {
  'Content-Security-Policy': pagePolicy(stylesheet, 'data:', "'self'"),
  // This policy hides the URL of the page, which contains the link, from other sites. It allows the referrer on this
  // site: with `no-referrer`, browsers would send `Origin: null` with the HTML form, and the guard would reject it.
  'Referrer-Policy': 'same-origin',
  'X-Robots-Tag': 'noindex',
};

declare global {
  namespace Express {
    interface Locals {
      /** The language of the signed link, after the link was read. */
      linkLanguage?: Language;
    }
  }
}

export interface NoticePage {
  status?: number;
  title: string;
  /** True if the page reports an error. */
  isError?: boolean;
  /** True if the page asks for the code. It can be opened without sending a code. */
  asksForCode?: boolean;
  body: Markup;
}

/** Returns the page in a language. */
type PageIn = (language: Language) => NoticePage;

/**
 * Returns the language that the query requests. Defaults to the language of the link, then to the browser's preference.
 */
export function pageLanguage(request: Request, ofLink: Language | undefined): Language {
  const { lang } = request.query;
  return lang === 'en' || lang === 'fr'
    ? lang
    : (ofLink ?? (request.acceptsLanguages('en', 'fr') === 'fr' ? 'fr' : 'en'));
}

export function sendNoticePage(response: Response, language: Language, pageIn: PageIn): void {
  response.set(headers).status(pageIn(language).status ?? 200);
  response.type('text/html').send(noticePage(response.req, language, pageIn));
}

function noticePage(request: Request, language: Language, pageIn: PageIn): string {
  const { title, isError, asksForCode, body } = pageIn(language);
  const hasLink = request.method !== 'POST' || asksForCode === true;
  const content = html`${hasLink && languageLink(request, language, asksForCode)}
<main>
<h1>${title}</h1>
${body}
${!hasLink && otherLanguage(language, pageIn)}
</main>`;
  const shown = `${isError ? noticeTexts[language].error : ''}${title}`;
  return page({ title: shown, styles: stylesheet, body: content, language });
}

const otherThan = (language: Language): Language => (language === 'en' ? 'fr' : 'en');

/** A link that opens the page in the other language with GET, so that it submits no HTML form a second time. */
function languageLink({ query: { link } }: Request, language: Language, asksForCode = false): Markup {
  const other = otherThan(language);
  const query = String(
    new URLSearchParams({
      ...(typeof link === 'string' && { link }),
      lang: other,
      ...(asksForCode && { step: 'code' }),
    }),
  );
  return html`<nav><a href="?${query}" lang="${other}" hreflang="${other}">${noticeTexts[language].otherLanguage}</a></nav>`;
}

/** The outcome of a button in the other language. A link could not show it, because GET does not press the button. */
function otherLanguage(language: Language, pageIn: PageIn): Markup {
  const other = otherThan(language);
  const { title, body } = pageIn(other);
  return html`<details lang="${other}"><summary>${noticeTexts[language].otherLanguage}</summary>
<h2>${title}</h2>
${body}</details>`;
}

export function messagePage({ title, text }: { title: string; text: string }): NoticePage {
  return { title, body: html`<p>${text}</p>` };
}

/** A page with one button. The button submits an HTML form to the URL of the page. */
export function buttonPage({ title, text, button }: { title: string; text: string; button: string }, step: string) {
  return { title, body: html`<p>${text}</p>\n${buttonForm(step, button)}` };
}

function buttonForm(step: string, button: string, more: { input?: Markup; isSecond?: boolean } = {}): Markup {
  return html`<form method="post">
<input type="hidden" name="step" value="${step}">
${more.input}
<button${more.isSecond && html` class="second"`}>${button}</button>
</form>`;
}

/** Returns a time as people say it, such as “1 hour, 30 minutes”. `ms` is in milliseconds. */
function durationText(ms: number, language: Language): string {
  const seconds = Math.round(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  const format = new Intl.DurationFormat(language, { style: 'long' });
  return format.format({ hours, minutes, seconds: seconds % 60 });
}

interface CodePageOptions {
  /** Time in milliseconds for which a code works. */
  codeLifetime: number;
  problem?: { status: number; text: (texts: NoticeTexts['code']) => string };
}

/**
 * The page with the input field for the code. It shows `problem` above the HTML form, and screen readers read `problem`
 * with the field.
 */
export function codePage(language: Language, { codeLifetime, problem }: CodePageOptions): NoticePage {
  const texts = noticeTexts[language].code;
  const { title, text, label, button, again } = texts;
  const input = html`<label for="code">${label}</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="64"${
    problem && html` aria-invalid="true" aria-describedby="problem"`
  }>`;
  return {
    ...(problem && { status: problem.status, isError: true }),
    title,
    asksForCode: true,
    body: html`${problem && html`<p class="error" id="problem" role="alert"><a href="#code">${problem.text(texts)}</a></p>`}
<p>${text.replace('LIFETIME', durationText(codeLifetime, language))}</p>
${buttonForm('delete', button, { input })}
${buttonForm('code', again, { isSecond: true })}`,
  };
}

type ProblemName = keyof (typeof noticeTexts)['en']['problems'];

const namesBySlug: Record<string, ProblemName> = {
  'invalid-request': 'invalid',
  'not-found': 'gone',
  gone: 'gone',
  'form-locked': 'locked',
  'form-not-draft': 'submitted',
  'form-held': 'held',
  'too-many-requests': 'busy',
  forbidden: 'invalid',
};

/** Renders a problem of the notice routes as an HTML page. Problems of other routes stay problem+json. */
export function presentNoticeProblem(
  problem: Problem,
  request: Request,
  response: Response,
): ProblemContent | undefined {
  if (!response.locals.route?.startsWith(noticePath)) return undefined;
  const language = pageLanguage(request, response.locals.linkLanguage);
  const name = namesBySlug[problem.slug] ?? 'unavailable';
  const pageIn = (shown: Language) => ({ ...messagePage(noticeTexts[shown].problems[name]), isError: true });
  return { contentType: 'text/html; charset=utf-8', body: noticePage(request, language, pageIn), headers };
}
