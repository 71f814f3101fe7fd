// The dashboard to open first. It shows whether the objectives are met, which alerts fire, and which service or
// dependency is the cause.
import type { RowText } from './panels.ts';
import { runningPods } from './pods.ts';
import { ofRelease, type Queries, recorded } from './queries.ts';

export function overview(queries: Queries): RowText[] {
  return [objectives(), traffic(queries), dependencies(queries), waitingWork(queries), runningPods(queries)];
}

const objectiveRunbooks = ['form-api', 'sign-in', 'targets'].flatMap((name) => [
  `${name}-availability`,
  `${name}-latency`,
]);
const alerts = `ALERTS{alertname=~"Formgate.+", alertstate="firing", ${ofRelease}}`;
const failures = (window: string) => `avg_over_time(formgate:sli_failures:rate5m{${ofRelease}}[${window}])`;
const requests = (window: string) => `(avg_over_time(formgate:sli_requests:rate5m{${ofRelease}}[${window}]) > 0)`;
const bySli = { by: ['sli'] };

function objectives(): RowText {
  const burn = (window: string) =>
    recorded(`max by (sli) (formgate:sli_burn:rate${window}{${ofRelease}})`, 'short', bySli);
  return {
    title: 'Objectives: do people get what they ask for?',
    panels: [
      {
        title: 'Firing alerts',
        question: 'Which alerts fire? Each has a runbook of the same name.',
        queries: [
          recorded(`sum by (alertname, severity) (${alerts})`, 'short', { by: ['alertname', 'severity'], quiet: true }),
        ],
        show: 'table',
      },
      {
        title: 'Error budget left, 30 days',
        question:
          'How much of the failed and slow requests that the objectives allow in 30 days is left? Below 0, the objective was missed.',
        queries: [
          recorded(
            `min by (sli) (1 - ${failures('30d')} / ${requests('30d')} / formgate:sli_budget:ratio{${ofRelease}})`,
            'percentunit',
            bySli,
          ),
        ],
        show: 'number',
        width: 16,
        limits: { yellow: 0.5, red: 0 },
        runbooks: objectiveRunbooks,
      },
      {
        title: 'Failed and slow requests',
        question: 'Which share of the requests fails, or takes longer than its objective?',
        queries: [
          recorded(
            `max by (sli) (formgate:sli_failures:rate5m{${ofRelease}} / (formgate:sli_requests:rate5m{${ofRelease}} > 0))`,
            'percentunit',
            bySli,
          ),
        ],
      },
      {
        title: 'Burn rate, 1 hour',
        question: 'Is the error budget being spent so fast that it needs action now? 14.4 spends 2 % of it in an hour.',
        queries: [burn('1h')],
        limits: { yellow: 1, red: 14.4 },
        runbooks: objectiveRunbooks,
      },
      {
        title: 'Burn rate, 6 hours',
        question: 'Is the error budget being spent steadily? 6 spends 5 % of it in six hours, 1 spends it in 30 days.',
        queries: [burn('6h')],
        limits: { yellow: 1, red: 6 },
        runbooks: objectiveRunbooks,
      },
    ],
  };
}

function traffic(queries: Queries): RowText {
  const all = 'formgate_http_requests_total';
  return {
    title: 'Traffic: how much, how many errors, how slow?',
    panels: [
      {
        title: 'Requests by service',
        question: 'How much traffic does each service get?',
        queries: [queries.perSecond(all, { by: ['job'] })],
        show: 'areas',
      },
      {
        title: 'Server errors by service',
        question: 'Which service responds with 5xx, and to which share of its requests?',
        queries: [queries.share(all, { by: ['job'], where: 'status="5xx"' })],
        runbooks: ['form-api-availability', 'sign-in-availability'],
      },
      {
        title: 'Response time by service',
        question: 'How long do 99 % of the requests take at most?',
        queries: [queries.quantile(0.99, 'formgate_http_request_duration_seconds', { by: ['job'] })],
        runbooks: ['form-api-latency', 'sign-in-latency'],
      },
      {
        title: 'Requests by status',
        question: 'Do clients get errors that are their own (4xx) or ours (5xx)?',
        queries: [queries.perSecond(all, { by: ['status'] })],
      },
      {
        title: 'Requests refused by rate limits',
        question:
          'Which rate limit refuses requests? Many people at one limit of addresses hint at wrong trusted proxies.',
        queries: [queries.perSecond('formgate_rate_limited_requests_total', { by: ['limit'], quiet: true })],
      },
      {
        title: 'Requests refused by queues',
        question: 'Which queue was full (full), or made requests wait too long (late)?',
        queries: [queries.perSecond('formgate_queue_refused_total', { by: ['queue', 'reason'], quiet: true })],
      },
      {
        title: 'Proxied requests by outcome',
        question: 'Do requests to the targets of frontends succeed?',
        queries: [queries.perSecond('formgate_proxied_requests_total', { by: ['outcome'] })],
        runbooks: ['targets-availability'],
      },
    ],
  };
}

function dependencies(queries: Queries): RowText {
  return {
    title: 'Dependencies: is the cause somewhere else?',
    panels: [
      {
        title: 'Stores and identity provider',
        question: 'When could at least one pod not use Postgres, Redis or the identity provider?',
        queries: [queries.min('formgate_dependency_up', { by: ['job', 'dependency'] })],
        show: 'states',
        runbooks: ['store-down', 'identity-provider-down'],
      },
      {
        title: 'Failed calls',
        question: 'Calls to which dependency fail, and how?',
        queries: [queries.perSecond('formgate_dependency_failures_total', { by: ['dependency', 'kind'], quiet: true })],
        runbooks: ['store-down', 'identity-provider-down'],
      },
      {
        title: 'Duration of calls',
        question: 'Which dependency is slow? Retries are included.',
        queries: [queries.quantile(0.99, 'formgate_dependency_call_duration_seconds', { by: ['dependency'] })],
      },
      {
        title: 'Calls by outcome',
        question: 'How many calls does each dependency get, and do they succeed?',
        queries: [queries.perSecond('formgate_dependency_calls_total', { by: ['dependency', 'outcome'] })],
      },
      {
        title: 'Certificates',
        question: 'How long is each certificate valid that a service uses? There are none without TLS.',
        queries: [
          queries.until('formgate_certificate_expiry_timestamp_seconds', { by: ['job', 'certificate'], quiet: true }),
        ],
        show: 'table',
        runbooks: ['certificate-expiring'],
      },
      {
        title: 'Checks at the start',
        question: 'Did pods find a dependency missing when they started?',
        queries: [queries.perMinute('formgate_startup_checks_total', { by: ['outcome'], quiet: true })],
      },
    ],
  };
}

function waitingWork(queries: Queries): RowText {
  return {
    title: 'Work that waits: is anything left undone?',
    panels: [
      {
        title: 'Oldest undelivered event',
        question: 'Do events and notices leave the outbox?',
        queries: [queries.max('formgate_outbox_oldest_undelivered_seconds')],
        show: 'number',
        width: 6,
        limits: { yellow: 60, red: 600 },
        runbooks: ['outbox-stuck'],
      },
      {
        title: 'Since the last success of the reconciler',
        question: 'Does the reconciler run, and does each of its parts succeed?',
        queries: [queries.since('formgate_reconciler_last_success_timestamp_seconds', { by: ['part'] })],
        show: 'number',
        mayBeNever: true,
        width: 6,
        limits: { yellow: 1_200, red: 3_600 },
        runbooks: ['reconciler-late'],
      },
      {
        title: 'Oldest overdue draft',
        question: 'Are drafts locked when they should be?',
        queries: [queries.max('formgate_oldest_overdue_draft_seconds')],
        show: 'number',
        width: 6,
        limits: { yellow: 3_600, red: 86_400 },
        runbooks: ['drafts-overdue'],
      },
      {
        title: 'Items in quarantine',
        question: 'How many items could not be processed and wait for an operator?',
        queries: [queries.max('formgate_quarantined_items', { by: ['job'], quiet: true })],
        show: 'number',
        width: 6,
        limits: { yellow: 1, red: 10 },
        runbooks: ['quarantine-growing'],
      },
    ],
  };
}
