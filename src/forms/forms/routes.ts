// The routes that read or delete a form, and the dependencies of all form routes.
import type { Clock } from '../../service/clock.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { AddressIndex } from '../addresses/index-walk.ts';
import type { CodeHashes } from '../codes/code.ts';
import type { CodeStore } from '../codes/store.ts';
import type { Verification } from '../codes/verification.ts';
import type { SchemaValidator } from '../definitions/schema-validator.ts';
import type { ReadExpiryDates } from '../expiry/dates.ts';
import type { StorageLimit } from '../storage/storage-limit.ts';
import { codeOf, type FormAccess, type FormRequest, formRequestOf, keepsChanging } from './access.ts';
import { describeAction } from './catalogue.ts';
import type { CreationLimits } from './creation-limits.ts';
import type { CreationStore } from './creation-store.ts';
import type { DataStore } from './data-store.ts';
import { formView } from './form.ts';
import type { Pseudonyms } from './history.ts';
import type { FindResponse } from './idempotency.ts';
import type { FormList } from './list-store.ts';
import { budgetsOf } from './notice-budget.ts';
import { statusesOf } from './policy.ts';
import { failures, formFailures, form as formResponse } from './responses.ts';
import { codeQuery, type createDataBody, formParams, tenantQuery } from './schema.ts';
import type { FormStore } from './store.ts';

/** The dependencies of the routes for forms, form data and operations. */
export interface FormRoutesOptions extends CreationLimits {
  /** Accepts tokens issued for this service. */
  bearer: Guard;
  tenant: Guard;
  forms: FormStore;
  list: FormList;
  expiryDates: ReadExpiryDates;
  creation: CreationStore;
  formData: DataStore;
  access: FormAccess;
  validator: SchemaValidator;
  findResponse: FindResponse;
  codes: Pick<CodeStore, 'hasSession'>;
  verification: Verification;
  hashes: CodeHashes;
  /** Returns the pseudonyms of accounts for histories. */
  pseudonyms: Pseudonyms;
  addresses: Pick<AddressIndex, 'hashes' | 'isComplete'>;
  /** The key of the HMACs of idempotency keys and bodies. */
  secret: string;
  dataBody: ReturnType<typeof createDataBody>;
  storage: StorageLimit;
  clock: Clock;
  log: Logger;
  /** Called after each commit that wrote to the outbox. */
  changed(): void;
}

const collection = '/form/v1/forms';

export function readFormRoute({ bearer, tenant, access, expiryDates }: FormRoutesOptions): Route {
  return route({
    method: 'get',
    path: `${collection}/:formId`,
    summary: 'Read a form without its data',
    description: describeAction('read'),
    guards: [bearer, tenant],
    params: formParams,
    query: tenantQuery,
    responses: {
      200: { description: 'The form', schema: formResponse },
      403: { description: 'The caller may not read this form' },
      ...formFailures,
    },
    async handle({ params }, _request, response) {
      const { form, role } = await access.authorize('read', formRequestOf(response, params.formId));
      const [dates] = await expiryDates([form]);
      response.json(formView(form, { administrator: role === 'admin', dates }));
    },
  });
}

export function deleteFormRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant } = options;
  return route({
    method: 'delete',
    path: `${collection}/:formId`,
    audit: 'form.delete',
    summary: 'Delete a form and the applicant’s information',
    description: `${describeAction('delete')} Deleting it again returns 204 as well.`,
    guards: [bearer, tenant],
    params: formParams,
    query: codeQuery,
    headers: { 'X-Form-Code': 'The code that the applicant received' },
    responses: {
      204: { description: 'The form is deleted' },
      400: { description: 'An intake application sent no code' },
      403: { description: 'The caller may not delete this form, or the code is wrong, expired or used' },
      404: formFailures[404],
      409: { description: 'The form is on hold, it is not a draft, or its definition cannot be used' },
      429: { description: 'Too many wrong codes' },
      ...failures,
    },
    async handle({ params, query }, request, response) {
      const formRequest = formRequestOf(response, params.formId);
      await remove(options, formRequest, codeOf(request, query.code)).catch(ignoreGone);
      response.status(204).end();
    },
  });
}

async function remove(
  { access, forms, verification, hashes, storage, clock, changed }: FormRoutesOptions,
  formRequest: FormRequest,
  code: string | undefined,
): Promise<void> {
  const { caller, tenantId, formId } = formRequest;
  const actor = { id: caller.subject, name: caller.name };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const { form, role } = await access.authorize('delete', formRequest);
    if (role === 'intake') {
      if (code === undefined) throw new Problem('code-required', 'Deleting a draft requires the applicant’s code.');
      await verification.verify({ form, account: caller, code });
    }
    if (form.held) throw new Problem('form-held', 'The form is on hold; an administrator can release it.');
    const statuses = statusesOf('delete', role);
    const budgets = budgetsOf(hashes, caller, { form, role });
    if (await forms.remove({ tenantId, formId, actor, now: clock(), statuses, budgets })) {
      storage.leftRows(tenantId);
      return changed();
    }
  }
  throw keepsChanging();
}

function ignoreGone(error: unknown): void {
  if (!(error instanceof Problem) || error.slug !== 'gone') throw error;
}
