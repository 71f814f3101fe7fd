// Routes behind the links of the warning mail. Opening a link shows a page and changes nothing. Only the page's button
// has an effect, and no script presses it. `keep` extends the life of a draft. `delete` also requires a code, because
// mail scanners press buttons, and because people other than the applicant may read the event that contains the link.
import type { Response } from 'express';
import { z } from 'zod';
import { anonymous, type ResponseDescription, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { Language } from '../forms/form.ts';
import type { LinkPurpose } from '../notices/links.ts';
import { earliestTimeZone } from '../notices/text-parts.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { type FormOfTenant, sendCode, useCode } from './code-routes.ts';
import {
  buttonPage,
  codePage,
  messagePage,
  type NoticePage,
  noticePath,
  pageLanguage,
  sendNoticePage,
} from './notice-page.ts';
import { type NoticeTexts, noticeTexts } from './notice-texts.ts';
import { auditedByApi, codeBody, noticeParams as params, smallBody } from './schema.ts';

const query = z.object({
  link: z.string().max(1_024).default(''),
  lang: z.string().optional(),
  step: z.string().optional().meta({ description: '`code` opens the page that takes a code, but sends no code' }),
});
const tag = 'Links in mails';
/** All responses are pages, also those with an error. */
const page = (description: string, headers?: Record<string, string>): ResponseDescription => ({
  description,
  textType: 'text/html',
  ...(headers && { headers }),
});
const retryAfter = { 'Retry-After': 'Seconds' };
/** The responses of an opened link, which does not read the form. */
const responses = {
  200: page('A page'),
  400: page('The link is not valid'),
  429: page('Too many requests from this address', retryAfter),
  500: page('An unexpected failure'),
};
/** The responses of the buttons, which call the form service. */
const buttonResponses = {
  ...responses,
  403: page('The page of another site sent the request'),
  404: page('There is no such form'),
  409: page('The form is not a draft, it is locked, or it is on hold'),
  410: page('The form was deleted'),
  502: page('A service of the platform failed'),
  503: page('The service is busy or unavailable', retryAfter),
  504: page('A service of the platform did not respond in time'),
};
/** The responses of the page that takes a code. */
const codeResponses = {
  ...buttonResponses,
  400: page('The link is not valid, or there is no code'),
  403: page('The code is wrong or too old, or the page of another site sent the request'),
  413: page('The body is too large'),
  415: page('The body is not `application/x-www-form-urlencoded`'),
  429: page('Too many requests from this address, or too many codes for this form', retryAfter),
};

export function noticeRoutes(options: ApplyRoutesOptions): Route[] {
  const guards = [anonymous, options.guards.requestLimit, options.guards.ownForm];
  const pages = (
    [
      ['keep', 'Ask whether to keep a draft'],
      ['delete', 'Ask whether to delete a draft'],
    ] as const
  ).map(([purpose, summary]) =>
    route({
      ...{ method: 'get', path: `${noticePath}/${purpose}`, summary, tag, guards, params, query, responses },
      handle(input, _request, response) {
        const { language } = readLink(options, purpose, input, response);
        const isSent = input.query.step === 'code';
        sendNoticePage(response, language, (shown) => openedPage(purpose, isSent, shown, options));
      },
    }),
  );
  const keep = route({
    ...{ method: 'post', path: `${noticePath}/keep`, summary: 'Keep a draft', tag, guards, params, query },
    ...{ audit: auditedByApi, responses: buttonResponses },
    async handle(input, _request, response) {
      const { form, language } = readLink(options, 'keep', input, response);
      const { text } = await options.api.call({
        method: 'POST',
        path: `/forms/${form.formId}`,
        tenantId: form.tenantId,
        body: '{"operation":"keep"}',
        context: response,
      });
      const { lockOn } = JSON.parse(text) as { lockOn: string | null };
      sendNoticePage(response, language, (shown) => keptPage(lockOn, shown));
    },
  });
  const remove = route({
    ...{ method: 'post', path: `${noticePath}/delete`, summary: 'Send a code, or delete the draft with it', tag },
    ...{ guards: [...guards, options.guards.codeLimit], params, query, responses: codeResponses },
    body: z.string().default(''),
    bodyType: 'application/x-www-form-urlencoded',
    bodyLimit: smallBody,
    audit: auditedByApi,
    async handle(input, _request, response) {
      const { form, language } = readLink(options, 'delete', input, response);
      const fields = new URLSearchParams(input.body);
      if (fields.get('step') === 'delete')
        await removeDraft(options, form, language, fields.get('code') ?? '', response);
      else await askForCode(options, form, language, response);
    },
  });
  return [...pages, keep, remove];
}

/**
 * Reads the signed link in the query, and stores its language for error pages. Throws Problem `invalid-request` if the
 * link is invalid. A link works as long as its form exists: a person who keeps a draft may delete it later.
 */
function readLink(
  { links }: ApplyRoutesOptions,
  purpose: LinkPurpose,
  input: { params: { formId: string }; query: { link: string } },
  response: Response,
): { form: FormOfTenant; language: Language } {
  const { formId } = input.params;
  const facts = links.read(purpose, formId, input.query.link);
  if (!facts) throw invalidRequest([{ pointer: '/query/link', detail: 'is not a link of this form' }]);
  response.locals.linkLanguage = facts.language;
  return {
    form: { formId, tenantId: facts.tenantId, hasLink: true, context: response },
    language: pageLanguage(response.req, facts.language),
  };
}

/** The page of a link. `isSent` is true if a code was sent before, and the person has changed the language since. */
function openedPage(
  purpose: LinkPurpose,
  isSent: boolean,
  language: Language,
  options: ApplyRoutesOptions,
): NoticePage {
  const { keep, remove } = noticeTexts[language];
  if (purpose === 'keep') return buttonPage(keep, 'keep');
  return isSent ? codePage(language, options) : buttonPage(remove, 'code');
}

function keptPage(lockOn: string | null, language: Language): NoticePage {
  const { title, until, text } = noticeTexts[language].kept;
  const date = lockOn === null ? '' : `${until.replace('DATE', dayOf(lockOn, language))} `;
  return messagePage({ title, text: date + text });
}

async function askForCode(
  options: ApplyRoutesOptions,
  form: FormOfTenant,
  language: Language,
  response: Response,
): Promise<void> {
  try {
    await sendCode(options, form);
    sendNoticePage(response, language, (shown) => codePage(shown, options));
  } catch (error) {
    if (wasJustSent(error)) {
      response.set(error.headers);
      return sendNoticePage(response, language, (shown) => ({ ...codePage(shown, options), status: 429 }));
    }
    sendCodePage(options, error, language, response);
  }
}

/**
 * True if a code was sent less than a minute ago, for example by the first click of a double click. The page that takes
 * the code then says what to do; an error would hide that the code is on its way.
 */
const wasJustSent = (error: unknown): error is Problem =>
  error instanceof Problem && error.slug === 'too-many-requests' && Number(error.headers['Retry-After']) <= 60;

async function removeDraft(
  options: ApplyRoutesOptions,
  form: FormOfTenant,
  language: Language,
  given: string,
  response: Response,
): Promise<void> {
  const parsed = codeBody.safeParse({ code: given });
  if (!parsed.success) {
    const problem = { status: 400, text: ({ missing }: NoticeTexts['code']) => missing };
    return sendNoticePage(response, language, (shown) => codePage(shown, { ...options, problem }));
  }
  const { code } = parsed.data;
  const { formId, tenantId } = form;
  try {
    // These pages set no cookie that identifies the browser, so all of them count as one browser. A second click on the
    // button thus gets the same page as the first. A code that was accepted here has deleted the form.
    await useCode(options, form, { code, browser: `deletion page of ${formId}` }, () =>
      options.api.call({
        ...{ method: 'DELETE', path: `/forms/${formId}`, tenantId, context: response },
        headers: { 'x-form-code': code },
      }),
    );
    sendNoticePage(response, language, (shown) => messagePage(noticeTexts[shown].removed));
  } catch (error) {
    sendCodePage(options, error, language, response);
  }
}

/** Shows the code page again after a wrong code or too many requests. Rethrows every other error. */
function sendCodePage(
  { codeLifetime }: ApplyRoutesOptions,
  error: unknown,
  language: Language,
  response: Response,
): void {
  const slug = error instanceof Problem ? error.slug : undefined;
  if (slug !== 'invalid-code' && slug !== 'too-many-requests') throw error;
  const isWrong = slug === 'invalid-code';
  const text = ({ wrong, tooMany }: NoticeTexts['code']) => (isWrong ? wrong : tooMany);
  if (error instanceof Problem) response.set(error.headers);
  const problem = { status: isWrong ? 403 : 429, text };
  sendNoticePage(response, language, (shown) => codePage(shown, { codeLifetime, problem }));
}

function dayOf(moment: string, language: Language): string {
  const locale = language === 'fr' ? 'fr-CA' : 'en-CA';
  return new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: earliestTimeZone }).format(new Date(moment));
}
