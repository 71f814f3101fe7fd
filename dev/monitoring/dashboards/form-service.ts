// The dashboard of the form service: requests, forms, codes, caches, database and child processes.
import type { RowText } from './panels.ts';
import { nodeProcesses } from './pods.ts';
import type { Queries } from './queries.ts';

export function formService(queries: Queries): RowText[] {
  return [requests(queries), forms(queries), platform(queries), database(queries), processes(queries)];
}

function requests(queries: Queries): RowText {
  const all = 'formgate_http_requests_total';
  const duration = 'formgate_http_request_duration_seconds';
  return {
    title: 'Requests',
    panels: [
      {
        title: 'Requests by route',
        question: 'Which routes get traffic?',
        queries: [queries.perSecond(all, { by: ['method', 'route'] })],
      },
      {
        title: 'Server errors by route',
        question: 'Which routes respond with 5xx, and how often?',
        queries: [queries.perSecond(all, { by: ['method', 'route'], where: 'status="5xx"', quiet: true })],
        runbooks: ['form-api-availability'],
      },
      {
        title: 'Rejected requests by route',
        question: 'Which routes respond with 4xx? A sudden rise follows a change of a client or of a definition.',
        queries: [queries.perSecond(all, { by: ['method', 'route'], where: 'status="4xx"', quiet: true })],
      },
      {
        title: 'Response time',
        question: 'How slow are the requests in the middle, and how slow are the slowest?',
        queries: [0.5, 0.95, 0.99].map((quantile) => queries.quantile(quantile, duration)),
        runbooks: ['form-api-latency'],
      },
      {
        title: 'Response time by route',
        question: 'Which route is slow? The value is that of 99 % of its requests.',
        queries: [queries.quantile(0.99, duration, { by: ['route'] })],
        runbooks: ['form-api-latency'],
      },
      {
        title: 'Requests refused by rate limits',
        question: 'Which rate limit refuses requests?',
        queries: [queries.perSecond('formgate_rate_limited_requests_total', { by: ['limit'], quiet: true })],
      },
    ],
  };
}

function forms(queries: Queries): RowText {
  return {
    title: 'Forms and applicants',
    panels: [
      {
        title: 'Forms by status',
        question: 'How many forms are there in each status?',
        queries: [queries.max('formgate_forms', { by: ['status'] })],
        show: 'areas',
      },
      {
        title: 'Transitions',
        question: 'Do people create and submit forms as usual? A fall shows a problem that no error counts.',
        queries: [queries.perMinute('formgate_form_transitions_total', { by: ['transition'] })],
      },
      {
        title: 'Codes',
        question: 'Are one-time codes sent, and do applicants enter the right ones?',
        queries: [queries.perMinute('formgate_codes_total', { by: ['outcome'] })],
        runbooks: ['codes-not-delivered'],
      },
      {
        title: 'Suppressed notices',
        question: 'Does somebody create many drafts for one address?',
        queries: [queries.perMinute('formgate_suppressed_notices_total', { legend: 'suppressed' })],
      },
      {
        title: 'Suspended data schemas',
        question: 'Was the data schema of a definition suspended, because it took too much time or memory?',
        queries: [queries.perMinute('formgate_schema_suspensions_total', { legend: 'suspended' })],
      },
      {
        title: 'Tenants near their storage limit',
        question: 'Does a tenant store so much that its forms are refused, or soon will be?',
        queries: [
          queries.max('formgate_tenants_near_storage_limit', { legend: 'at least 80 %' }),
          queries.max('formgate_tenants_over_storage_limit', { legend: 'limit reached' }),
        ],
        runbooks: ['tenant-storage'],
      },
      {
        title: 'Requests refused because of the storage limit',
        question: 'Do applicants notice that their tenant stores too much?',
        queries: [queries.perMinute('formgate_storage_refusals_total', { by: ['request'] })],
        runbooks: ['tenant-storage'],
      },
      {
        title: 'Index of addresses',
        question: 'Does the search by address find every form? 1 is complete.',
        queries: [queries.min('formgate_address_index_complete', { legend: 'complete' })],
        show: 'number',
        width: 8,
        limits: { yellow: 1, red: 0 },
      },
    ],
  };
}

function platform(queries: Queries): RowText {
  return {
    title: 'The platform',
    panels: [
      {
        title: 'Cache hits',
        question: 'Which share of the reads of a cache needs no call to the platform?',
        queries: [queries.share('formgate_cache_reads_total', { by: ['cache'], where: 'outcome="hit"' })],
      },
      {
        title: 'Reads of caches by outcome',
        question: 'Are responses old (stale), or reads refused, because the platform fails?',
        queries: [queries.perSecond('formgate_cache_reads_total', { by: ['cache', 'outcome'] })],
      },
      {
        title: 'Old responses served',
        question: 'Which service fails, so that old responses are served?',
        queries: [queries.perSecond('formgate_platform_stale_serves_total', { by: ['dependency'], quiet: true })],
      },
      {
        title: 'Reads of unknown names',
        question: 'Does a caller name many definitions or tenants that do not exist?',
        queries: [
          queries.perSecond('formgate_platform_miss_reads_total', { by: ['dependency', 'outcome'], quiet: true }),
        ],
      },
      {
        title: 'Open circuits',
        question: 'Calls to which service are not even tried, because the last ones failed?',
        queries: [queries.sum('formgate_platform_circuit_open', { by: ['dependency'], quiet: true })],
        limits: { red: 1 },
      },
      {
        title: 'Registrations at the platform',
        question: 'Is something that the service must register not written, lost, or unknown to the platform?',
        queries: [
          queries.max('formgate_platform_registration_pending', {
            by: ['document'],
            legend: '{{document}} is not written',
            quiet: true,
          }),
          queries.max('formgate_platform_registration_unknown', {
            by: ['dependency'],
            legend: '{{dependency}} does not know it',
            quiet: true,
          }),
        ],
        limits: { red: 1 },
        runbooks: ['registration-missing'],
      },
      {
        title: 'Repaired registrations',
        question: 'Did another writer undo a registration?',
        queries: [queries.perMinute('formgate_platform_registration_repairs_total', { by: ['document'], quiet: true })],
        runbooks: ['registration-repaired'],
      },
    ],
  };
}

export function database(queries: Queries): RowText {
  return {
    title: 'Connections to Postgres',
    panels: [
      {
        title: 'Connections by state',
        question: 'How many connections of each pool are in use?',
        queries: [queries.sum('formgate_postgres_pool_connections', { by: ['pool', 'state'] })],
        width: 6,
      },
      {
        title: 'Requests that wait',
        question: 'Do requests wait because all connections of a pool are in use?',
        queries: [queries.sum('formgate_postgres_pool_waiting', { by: ['pool'] })],
        width: 6,
      },
      {
        title: 'Waits for a connection',
        question: 'How long did requests wait for a connection, if they had to? The value is that of 99 % of them.',
        queries: [queries.quantile(0.99, 'formgate_postgres_pool_wait_seconds', { by: ['pool'], quiet: true })],
        width: 6,
      },
      {
        title: 'Requests refused for lack of connections',
        question: 'Did requests get 503 busy, because the queue was full or they waited too long?',
        queries: [queries.perSecond('formgate_postgres_pool_refused_total', { by: ['pool', 'reason'], quiet: true })],
        width: 6,
        runbooks: ['form-api-availability'],
      },
    ],
  };
}

function processes(queries: Queries): RowText {
  return {
    title: 'Child processes and pods',
    panels: [
      {
        title: 'Jobs of child processes',
        question: 'Are validations of form data and renderings of notices refused or stopped?',
        queries: [queries.perSecond('formgate_worker_jobs_total', { by: ['worker', 'outcome'] })],
      },
      {
        title: 'Waits for a child process',
        question: 'Does one tenant use so much that its own requests wait? The value is that of 99 % of the jobs.',
        queries: [queries.quantile(0.99, 'formgate_worker_wait_seconds', { by: ['worker'] })],
      },
      {
        title: 'Ended child processes',
        question: 'Did a definition or template of a tenant take too much time or memory?',
        queries: [queries.perMinute('formgate_worker_kills_total', { by: ['worker'], quiet: true })],
      },
      ...nodeProcesses(queries),
    ],
  };
}
