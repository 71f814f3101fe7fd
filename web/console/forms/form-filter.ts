// The filter of the list of forms. The URL of the page contains the filter, but not the applicant's email address or
// telephone number, because these are personal data.
import type { ApiRequest } from '../api/request.ts';

export interface Filter {
  definition: string;
  status: string;
  /** `true`, `false` or empty. */
  anonymous: string;
  createdAfter: string;
  createdBefore: string;
  sort: string;
  after: string;
}

const names = ['definition', 'status', 'anonymous', 'createdAfter', 'createdBefore', 'sort', 'after'] as const;

export function filterOf(query: URLSearchParams): Filter {
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as unknown as Filter;
}

export function queryOf(filter: Filter): URLSearchParams {
  return new URLSearchParams(names.flatMap((name) => (filter[name] === '' ? [] : [[name, filter[name]]])));
}

/**
 * Returns the request for a page of the list. `address` is an email address or telephone number. The address is
 * percent-encoded in a header, because header fields are ASCII.
 */
export function listRequest(filter: Filter, address: string): ApiRequest {
  const { definition, status, anonymous, createdAfter, createdBefore, sort, after } = filter;
  const criteria = {
    ...(definition && { definitionIdEquals: definition }),
    ...(status && { statusEquals: status }),
    ...(anonymous && { anonymousApplicantEquals: anonymous === 'true' }),
    ...(createdAfter && { createDateAfter: startOf(createdAfter) }),
    ...(createdBefore && { createDateBefore: startOf(createdBefore) }),
  };
  const [sortBy, sortDirection] = sort.split(' ');
  return {
    target: 'form-service',
    path: '/form/v1/forms',
    query: {
      criteria: Object.keys(criteria).length > 0 ? JSON.stringify(criteria) : undefined,
      sortBy: sortBy || 'created',
      sortDirection: sortDirection || 'desc',
      top: 25,
      after,
      includeTotal: true,
    },
    ...(address && { headers: { 'X-Applicant-Address': encodeURIComponent(address.trim()).replaceAll('%40', '@') } }),
  };
}

/**
 * Returns the start of a day in the time zone of the browser; the list shows times in the same time zone. Returns a
 * text that is not a date unchanged, so that the form service rejects it.
 */
function startOf(day: string): string {
  const start = new Date(`${day}T00:00:00`);
  return Number.isNaN(start.getTime()) ? day : start.toISOString();
}
