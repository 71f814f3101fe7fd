// The route that lists forms, for administrators and for people who have created forms themselves. Form data stays the
// JSON text that the database returns: parsing and writing 8 MiB would stop all other requests for 100 ms or more.
import { role } from '../../service/auth/bearer-guards.ts';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import { parseAddress } from '../addresses/address.ts';
import { type Channel, formView } from './form.ts';
import { mostCounted } from './list-store.ts';
import { adminRole, intakeRole } from './policy.ts';
import { failures, formList } from './responses.ts';
import type { FormRoutesOptions } from './routes.ts';
import { cursorOf, listQuery } from './schema.ts';

const addressHeader = 'X-Applicant-Address';

export function listFormsRoute(options: FormRoutesOptions): Route {
  const { bearer, tenant, list, expiryDates, addresses } = options;
  return route({
    method: 'get',
    path: '/form/v1/forms',
    audit: { actions: ['form.read-data', 'form.search'] },
    summary: 'List forms',
    description:
      'Newest first, unless sorted in another way. By form-admin, but not by intake applications; with `mine=true` by any ' +
      'signed-in person, who gets the forms that they created themselves.',
    guards: [bearer, mayList, tenant],
    query: listQuery,
    headers: {
      [addressHeader]:
        'Only forms of the applicant with this email address or telephone number, in any spelling; to form-admin only. ' +
        'Characters beyond ASCII, and %, are percent-encoded. A header, because access logs contain query parameters',
    },
    responses: {
      200: { description: 'A page of forms', schema: formList },
      400: { description: 'The query or the address is not valid' },
      403: {
        description: 'The caller is not form-admin, and does not ask for their own forms without form data and address',
      },
      ...failures,
    },
    async handle({ query: { mine, tenantId: _named, ...query } }, request, response) {
      const tenantId = tenantOf(response).id;
      const address = addressIn(request.get(addressHeader));
      // The index is checked before the list is read. Otherwise, the index could become complete after the list was
      // read, and an incomplete list would seem complete.
      const searchIncomplete = address !== undefined && !(await addresses.isComplete());
      const addressHash = address && addresses.hashes.one(tenantId, address);
      const { issuer, subject, roles } = callerOf(response);
      const creator = mine ? { issuer, subject } : undefined;
      const { forms, last, total } = await list({ ...query, tenantId, creator, addressHash });
      noteAudit(response, { objectIds: forms.map(({ id }) => id) });
      const dates = await expiryDates(forms);
      const next = last && cursorOf(last, query.sortBy === 'status' ? last.status : undefined);
      const results = forms.map(({ data, files, ...form }, index) => {
        const view = JSON.stringify(formView(form, { administrator: roles.has(adminRole), dates: dates[index] }));
        return data === null ? view : `${view.slice(0, -1)},"data":${data},"files":${files}}`;
      });
      const page = {
        ...{ after: query.after?.text ?? null, next: next ?? null, size: forms.length, ...totalOf(total) },
        ...(searchIncomplete && { searchIncomplete }),
      };
      response.type('application/json').send(`{"results":[${results.join(',')}],"page":${JSON.stringify(page)}}`);
    },
  });
}

/** Parses the address in the header. If the address is invalid, the 400 response does not repeat it. */
function addressIn(header: string | undefined): Channel | undefined {
  if (header === undefined) return undefined;
  const address = parseAddress(decoded(header));
  if (address) return address;
  const detail = 'must be one email address or telephone number, with characters beyond ASCII and % percent-encoded';
  throw invalidRequest([{ pointer: '/headers/x-applicant-address', detail }]);
}

/**
 * Decodes the header. Returns an empty text if the header is not ASCII, because Node.js reads the bytes as Latin-1 even
 * if the client used another encoding.
 */
function decoded(header: string): string {
  try {
    return /^[\x20-\x7e]*$/.test(header) ? decodeURIComponent(header) : '';
  } catch {
    return '';
  }
}

function totalOf(total: number | undefined) {
  if (total === undefined || total <= mostCounted) return total === undefined ? {} : { total };
  return { total: mostCounted, totalIsMinimum: true };
}

const isAdministrator = role(adminRole);

/**
 * Without the role form-admin, people may list only their own forms, without form data, and may not search by address.
 * The same applies to intake applications, because they may not reach forms of applicants with an account.
 * Lists with form data and searches have an audit event, also if they are refused.
 */
const mayList: Guard = {
  name: 'mayList',
  check(request, response) {
    const { mine, includeData } = request.query;
    const hasData = includeData !== undefined && includeData !== 'false';
    const isSearch = request.get(addressHeader) !== undefined;
    if (hasData) noteAudit(response, { action: 'form.read-data' });
    else if (isSearch) noteAudit(response, { action: 'form.search' });
    else if (mine === 'true') return undefined;
    if (callerOf(response).roles.has(intakeRole))
      throw new Problem('forbidden', 'An intake application may not list forms of others, whatever its other roles.');
    return isAdministrator.check(request, response);
  },
};
