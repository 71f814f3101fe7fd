// Sends a code to the applicant of a form, and opens the form in the browser in which the code is entered. Responses do
// not show whether a form exists.
import { z } from 'zod';
import { PlatformError } from '../../platform/platform-error.ts';
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { type HttpResponse, tenantOf } from '../../service/http/request-context.ts';
import type { RateLimiter } from '../../service/limits/rate-limit.ts';
import { CallOutcomeUnknown, UnsentCall } from './api.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { auditedByApi, codeBody, failures, formParams, formPath, setCookie, smallBody } from './schema.ts';

const sentResponse = z.object({ sent: z.literal(true), expires: z.iso.datetime() }).meta({ id: 'ApplyCodeSent' });

/** Problems that a response must never show, because they reveal whether a form exists. */
const alwaysHidden = ['not-found', 'forbidden', 'no-channel', 'conflict'];
/** Problems that reveal the status of a form. A person with a signed link got a mail about it, and may see them. */
const statusProblems = ['gone', 'form-locked', 'form-not-draft'];
const hiddenFromRecipient = new Set(alwaysHidden);
const hiddenFromAnyone = new Set([...alwaysHidden, ...statusProblems]);
const hiddenFrom = (hasLink: boolean) => (hasLink ? hiddenFromRecipient : hiddenFromAnyone);

export function sendCodeRoute(options: ApplyRoutesOptions): Route {
  const { guards, clock, codeLifetime } = options;
  return route({
    method: 'post',
    path: `${formPath}/codes`,
    audit: auditedByApi,
    summary: 'Send a code to the applicant of a form',
    description: 'The response is the same for every id, whether such a draft exists or not.',
    tag: 'Intake application',
    guards: [...guards.forAnyone, guards.codeLimit],
    params: formParams,
    responses: {
      202: { description: 'If there is such a draft, a code is on its way', schema: sentResponse },
      ...failures,
    },
    async handle({ params: { formId } }, _request, response) {
      await sendCode(options, { formId, tenantId: tenantOf(response).id, context: response });
      response.status(202).json({ sent: true, expires: new Date(clock().getTime() + codeLifetime).toISOString() });
    },
  });
}

export interface FormOfTenant {
  formId: string;
  tenantId: string;
  /** True if the person has opened a signed link to the form. */
  hasLink?: boolean;
  context: HttpResponse;
}

/**
 * Sends a code to the applicant of the form. Without a signed link, also resolves if no such draft exists, so that the
 * response does not reveal whether the form exists. Throws Problem `too-many-requests`, or the error of a failed call.
 * A call that failed before a code was sent does not count towards the limits, so that the applicant can ask again. If
 * a code may have been sent, the call counts.
 *
 * The form service also limits sends. It counts them in all pods and in sliding windows, but only for forms that exist.
 * This function also resolves if the form service refuses a send because of its limits.
 */
export async function sendCode(
  { api, sends }: Pick<ApplyRoutesOptions, 'api' | 'sends'>,
  { formId, hasLink = false, ...form }: FormOfTenant,
): Promise<void> {
  const hidden = hiddenFrom(hasLink);
  const limiters = [sends.minute, sends.hour];
  for (const limiter of limiters)
    await count(limiter, formId, 'A code was sent a moment ago, or five were in the last hour.');
  const call = { method: 'POST', path: `/forms/${formId}`, body: '{"operation":"send-code"}', ...form } as const;
  await api.call(call).catch((error: unknown) => {
    if (error instanceof Problem && (hidden.has(error.slug) || error.slug === 'too-many-requests')) return;
    if (mayHaveSent(error)) throw error;
    sends.hour.uncount(formId);
    if (!mayBeRefusedNext(error)) sends.minute.uncount(formId);
    throw error;
  });
}

/**
 * True if a code may have been sent: the form service did not report an outcome, or it reported that its call to
 * another service timed out (decision 0085). A PlatformError means that the form service was not called.
 */
function mayHaveSent(error: unknown): boolean {
  if (!(error instanceof Problem) || error instanceof PlatformError) return false;
  return error instanceof CallOutcomeUnknown || error.slug === 'dependency-timeout';
}

/**
 * True if the form service may itself refuse the next send for a minute. The response hides such a refusal, so the
 * limit of this process must refuse the next send instead.
 */
function mayBeRefusedNext(error: unknown): boolean {
  return error instanceof Problem && error.slug === 'dependency-failed' && !(error instanceof UnsentCall);
}

async function count(limiter: RateLimiter, formId: string, detail: string): Promise<void> {
  const { isAllowed, reset } = await limiter.count(formId);
  if (isAllowed) return;
  throw new Problem('too-many-requests', detail, { headers: { 'Retry-After': String(reset) } });
}

export function checkCodeRoute(options: ApplyRoutesOptions): Route {
  const { guards, cookies, api } = options;
  return route({
    method: 'post',
    path: `${formPath}/code-checks`,
    audit: auditedByApi,
    summary: 'Open the form in this browser with a code',
    description: 'A code opens a form in one browser only. For 30 minutes, this browser may read the form data.',
    tag: 'Intake application',
    guards: [...guards.forAnyone, guards.codeLimit],
    params: formParams,
    body: codeBody,
    bodyLimit: smallBody,
    responses: {
      204: { description: 'The form is open in this browser', headers: setCookie },
      ...failures,
      403: { description: 'The code is wrong, expired, or was entered in another browser; or there is no such form' },
    },
    async handle({ params: { formId }, body: { code } }, request, response) {
      const { id: tenantId } = tenantOf(response);
      const browser = cookies.browserOf(request, response);
      await useCode(options, { formId, tenantId }, { code, browser }, () =>
        api.call({
          method: 'GET',
          path: `/forms/${formId}/data`,
          tenantId,
          headers: { 'x-form-code': code },
          context: response,
        }),
      );
      cookies.issue(request, response, { formId, tenantId, code });
      response.status(204).end();
    },
  });
}

/** The characters that the header X-Form-Code can contain. No code has others. */
const possibleCode = /^[\x21-\x7e]+$/;

/**
 * Calls the form service with a code, unless another browser has used that code. The form service cannot check this:
 * all browsers use the intake application's account, so the form service accepts a used code again. Throws Problem
 * `invalid-code`, also for a form that does not exist.
 */
export async function useCode(
  { store, hashes, wrongCodes, clock }: Pick<ApplyRoutesOptions, 'store' | 'hashes' | 'wrongCodes' | 'clock'>,
  { formId, tenantId, hasLink = false }: Omit<FormOfTenant, 'context'>,
  { code, browser }: { code: string; browser: string },
  call: () => Promise<unknown>,
): Promise<void> {
  const use = {
    formId,
    codeHashes: hashes.code(formId, code),
    browserHashes: hashes.browser(browser),
    now: clock(),
  };
  const refuse = async (): Promise<never> => {
    await count(wrongCodes, formId, 'Too many wrong codes were entered. Try again when the hour is over.');
    throw new Problem('invalid-code', 'The code is wrong, has expired, or was entered in another browser.');
  };
  if (!possibleCode.test(code) || !(await store.claimCode(tenantId, use))) return refuse();
  try {
    await call();
  } catch (error) {
    // The code is released even after a timeout, although the form service may have accepted it. The form was not
    // opened in this browser, and the applicant may have no other code.
    await store.releaseCode(tenantId, use);
    const isWrong = error instanceof Problem && (error.slug === 'invalid-code' || hiddenFrom(hasLink).has(error.slug));
    if (!isWrong) throw error;
    return refuse();
  }
  // A concurrent attempt of this browser may have failed and released the code. Another browser may then have used it.
  if (!(await store.claimCode(tenantId, use, true))) return refuse();
}
