// The route that reads the history of a form.
import { type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { formRequestOf } from './access.ts';
import { describeAction } from './catalogue.ts';
import { historyOf, keptEntries } from './history.ts';
import { formFailures, formHistory } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { formParams, tenantQuery } from './schema.ts';

export function readHistoryRoute({ bearer, tenant, access, forms, pseudonyms }: FormRoutesOptions): Route {
  return route({
    method: 'get',
    path: '/form/v1/forms/:formId/history',
    summary: 'Read the history of a form',
    description: `${describeAction('read-history')} The deletion of the form deletes its history.`,
    guards: [bearer, tenant],
    params: formParams,
    query: tenantQuery,
    responses: {
      200: { description: 'The history, oldest first', schema: formHistory },
      403: { description: 'The caller may not read this history' },
      ...formFailures,
    },
    async handle({ params }, _request, response) {
      const formRequest = formRequestOf(response, params.formId);
      const { form } = await access.authorize('read-history', formRequest);
      const rows = await forms.history(formRequest);
      if (!rows) throw new Problem('gone', 'The form was deleted.');
      const { issuer, subject } = formRequest.caller;
      const own = pseudonyms(form.id, issuer, subject);
      response.json({
        results: historyOf(form, rows, pseudonyms).map(({ event, time, role, account }) => ({
          event,
          time: time.toISOString(),
          by: { role, account, isCaller: account === own },
        })),
        truncated: rows.length >= keptEntries,
      });
    },
  });
}
