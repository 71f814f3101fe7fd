// The route that lists forms, for administrators and for people who created forms themselves.
import { role } from '../../service/auth/bearer-guards.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { formView } from './form.ts';
import { mostCounted } from './list-store.ts';
import { adminRole } from './policy.ts';
import { failures, formList } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { cursorOf, listQuery } from './schema.ts';

export function listFormsRoute({ bearer, tenant, list, expiryDates }: FormRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/forms',
    summary: 'List forms',
    description:
      'Newest first, unless sorted in another way. By form-admin; with `mine=true` by any signed-in person, who gets the ' +
      'forms that they created themselves.',
    guards: [bearer, mayList, tenant],
    query: listQuery,
    answers: {
      200: { description: 'A page of forms', schema: formList },
      403: { description: 'The caller is no form-admin, and does not ask for their own forms without form data' },
      ...failures,
    },
    async handle({ query: { mine, tenantId: _named, ...query } }, _request, response) {
      const { issuer, subject, roles } = callerOf(response);
      const creator = mine ? { issuer, subject } : undefined;
      const { forms, last, total } = await list({ ...query, tenantId: tenantOf(response).id, creator });
      const dates = await expiryDates(forms);
      const next = last && cursorOf(last, query.sortBy === 'status' ? last.status : undefined);
      response.json({
        results: forms.map(({ data, files, ...form }, index) => ({
          ...formView(form, { administrator: roles.has(adminRole), dates: dates[index] }),
          ...(query.includeData && { data, files }),
        })),
        page: { after: query.after?.text ?? null, next: next ?? null, size: forms.length, ...totalOf(total) },
      });
    },
  });
}

function totalOf(total: number | undefined) {
  if (total === undefined || total <= mostCounted) return total === undefined ? {} : { total };
  return { total: mostCounted, totalIsMinimum: true };
}

const isAdministrator = role(adminRole);

/** Without form-admin, people may list only their own forms, without form data. */
const mayList: Guard = {
  name: 'mayList',
  check(request, response) {
    const { mine, includeData } = request.query;
    const isOwn = mine === 'true' && (includeData === undefined || includeData === 'false');
    return isOwn ? undefined : isAdministrator.check(request, response);
  },
};
