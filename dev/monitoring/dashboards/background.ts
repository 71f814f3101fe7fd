// The dashboard of background work: the outbox, the reconciler, the quarantine, and the queues of the platform server.
import type { RowText } from './panels.ts';
import type { Queries } from './queries.ts';

export function background(queries: Queries): RowText[] {
  return [outbox(queries), reconciler(queries), quarantine(queries), platformServer(queries)];
}

function outbox(queries: Queries): RowText {
  return {
    title: 'Outbox: are events delivered?',
    panels: [
      {
        title: 'Age of the oldest undelivered event',
        question: 'How far behind is the delivery of events, calls and notices?',
        queries: [queries.max('formgate_outbox_oldest_undelivered_seconds', { by: ['kind'] })],
        limits: { yellow: 60, red: 600 },
        runbooks: ['outbox-stuck'],
      },
      {
        title: 'Undelivered events',
        question: 'How many rows are due?',
        queries: [queries.max('formgate_outbox_undelivered', { by: ['kind'] })],
        show: 'areas',
        runbooks: ['outbox-stuck'],
      },
      {
        title: 'Events that failed ten times or more',
        question: 'Are there rows that no attempt delivers?',
        queries: [queries.max('formgate_outbox_repeatedly_failed', { by: ['kind'] })],
        runbooks: ['outbox-stuck'],
      },
      {
        title: 'Deliveries by outcome',
        question: 'Do deliveries succeed, and if not, is the service (failed) or the row (rejected) the cause?',
        queries: [queries.perMinute('formgate_outbox_deliveries_total', { by: ['kind', 'outcome'] })],
        runbooks: ['outbox-stuck'],
      },
      {
        title: 'Duration of deliveries',
        question: 'Which kind of delivery is slow? The value is that of 99 % of the deliveries.',
        queries: [queries.quantile(0.99, 'formgate_outbox_delivery_duration_seconds', { by: ['kind'] })],
      },
    ],
  };
}

function reconciler(queries: Queries): RowText {
  return {
    title: 'Reconciler: are drafts expired and core clients written?',
    panels: [
      {
        title: 'Since the last success',
        question: 'How long ago did each part succeed? A part that never succeeded is missing.',
        queries: [
          queries.since('formgate_reconciler_last_success_timestamp_seconds', { by: ['part'], skipsZero: true }),
        ],
        limits: { yellow: 1_200, red: 3_600 },
        runbooks: ['reconciler-late'],
      },
      {
        title: 'Since the last run',
        question: 'Does the CronJob start runs, whatever their outcome?',
        queries: [queries.since('formgate_reconciler_last_run_timestamp_seconds', { legend: 'last run' })],
        runbooks: ['reconciler-late'],
      },
      {
        title: 'Duration of the last run',
        question: 'Do runs take longer and longer?',
        queries: [queries.max('formgate_reconciler_last_run_duration_seconds', { legend: 'duration' })],
      },
      {
        title: 'Outcome of the last run',
        question: 'Did the last run succeed? The outcome with the value 1 is the one of the last run.',
        queries: [queries.max('formgate_reconciler_last_run_outcome', { by: ['outcome'] })],
        show: 'table',
        runbooks: ['reconciler-late'],
      },
      {
        title: 'Work of the last run',
        question: 'How many forms, rows and core clients did the last run change?',
        queries: [queries.max('formgate_reconciler_last_run_count', { by: ['outcome'] })],
        show: 'table',
      },
      {
        title: 'Core clients by condition',
        question: 'Are CoreClient resources accepted, written and usable? There are none outside Kubernetes.',
        queries: [queries.max('formgate_reconciler_core_clients', { by: ['condition'], quiet: true })],
        show: 'table',
      },
      {
        title: 'Oldest overdue draft',
        question: 'How late is the lock of the most overdue draft?',
        queries: [queries.max('formgate_oldest_overdue_draft_seconds', { legend: 'overdue' })],
        limits: { yellow: 3_600, red: 86_400 },
        runbooks: ['drafts-overdue'],
      },
      {
        title: 'Overdue deletions',
        question: 'How many locked forms should have been deleted more than a day ago?',
        queries: [queries.max('formgate_overdue_deletions', { legend: 'forms' })],
        limits: { red: 1 },
        runbooks: ['drafts-overdue'],
      },
    ],
  };
}

function quarantine(queries: Queries): RowText {
  return {
    title: 'Quarantine: which items wait for an operator?',
    panels: [
      {
        title: 'Items in quarantine',
        question: 'What could not be processed, and why?',
        queries: [queries.max('formgate_quarantined_items', { by: ['job', 'kind', 'reason'], quiet: true })],
        show: 'table',
        width: 12,
        runbooks: ['quarantine-growing'],
      },
      {
        title: 'Items in quarantine over time',
        question: 'Does the quarantine grow?',
        queries: [queries.max('formgate_quarantined_items', { by: ['job'], quiet: true })],
        width: 12,
        runbooks: ['quarantine-growing'],
      },
    ],
  };
}

function platformServer(queries: Queries): RowText {
  return {
    title: 'Platform server, if it replaces the services of the platform',
    panels: [
      {
        title: 'Items in its queues',
        question: 'How many events are to be routed, and how many notices to be delivered?',
        queries: [queries.max('formgate_jobs_waiting', { by: ['queue'], quiet: true })],
        runbooks: ['jobs-stuck'],
      },
      {
        title: 'Oldest item in its queues',
        question: 'How far behind is the platform server?',
        queries: [queries.max('formgate_jobs_oldest_waiting_seconds', { by: ['queue'], quiet: true })],
        limits: { yellow: 600, red: 2_700 },
        runbooks: ['jobs-stuck'],
      },
      {
        title: 'Notices and mails',
        question: 'Does the mail server accept what the platform server sends?',
        queries: [
          queries.perMinute('formgate_notices_total', { by: ['outcome'], legend: 'notices {{outcome}}', quiet: true }),
          queries.perMinute('formgate_mails_total', { by: ['outcome'], legend: 'mails {{outcome}}', quiet: true }),
        ],
        runbooks: ['codes-not-delivered'],
      },
    ],
  };
}
