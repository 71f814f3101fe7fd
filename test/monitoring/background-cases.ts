// Situations for the alerts about stores, the outbox, the reconciler and the quarantine: incidents, the normal case and
// near misses.
import { type AlertCase, critical, day, gauge, handler, plainGauge, series, warning } from './series.ts';

const down: AlertCase[] = [
  ['all pods stop responding', gauge([1, 10], [0, 10]), 15, [{ ...critical, job: 'forms' }]],
  ['the targets disappear', gauge([1, 10], [undefined, 10]), 19, [{ ...critical, job: 'forms' }]],
  ['all is well', gauge([1, 30]), 30, []],
  ['a restart of two minutes', gauge([1, 10], [0, 2], [1, 10]), 13, []],
].map(
  ([when, up, at, firing]) =>
    ({ alert: 'FormgateServiceDown', when, series: { [series('up')]: up }, at, firing }) as AlertCase,
);

const oneOfTwo: AlertCase = {
  alert: 'FormgateServiceDown',
  when: 'one of two pods is down',
  series: { [series('up')]: gauge([0, 30]), [series('up', { pod: 'forms-2' })]: gauge([1, 30]) },
  at: 30,
  firing: [],
};

const dependency = (name: string, ...parts: Parameters<typeof gauge>) => ({
  [series('formgate_dependency_up', { dependency: name, ...handler })]: gauge(...parts),
});

const dependencies: AlertCase[] = [
  {
    ...{ alert: 'FormgateStoreDown', when: 'Redis stops', at: 12 },
    series: dependency('redis', [1, 10], [0, 10]),
    firing: [{ ...critical, job: 'token-handler', dependency: 'redis' }],
  },
  {
    ...{ alert: 'FormgateStoreDown', when: 'one of two pods cannot reach Postgres', at: 12 },
    series: {
      [series('formgate_dependency_up', { dependency: 'postgres' })]: gauge([1, 10], [0, 10]),
      [series('formgate_dependency_up', { dependency: 'postgres', pod: 'forms-2' })]: gauge([1, 20]),
    },
    firing: [{ ...critical, job: 'forms', dependency: 'postgres' }],
  },
  { ...{ alert: 'FormgateStoreDown', when: 'all is well', at: 60, firing: [] }, series: dependency('redis', [1, 60]) },
  {
    ...{ alert: 'FormgateStoreDown', when: 'a failover of 30 seconds', at: 11, firing: [] },
    series: dependency('redis', [1, 10], [0, 0.5], [1, 10]),
  },
  {
    ...{ alert: 'FormgateStoreDown', when: 'a gap in the scrapes', at: 15, firing: [] },
    series: dependency('redis', [1, 10], [undefined, 10]),
  },
  {
    ...{ alert: 'FormgateStoreDown', when: 'only the identity provider is down', at: 15, firing: [] },
    series: dependency('identity-provider', [0, 20]),
  },
  {
    ...{ alert: 'FormgateIdentityProviderDown', when: 'the identity provider is down', at: 13 },
    series: dependency('identity-provider', [1, 10], [0, 10]),
    firing: [{ ...critical, job: 'token-handler' }],
  },
  {
    ...{ alert: 'FormgateIdentityProviderDown', when: 'all is well', at: 60, firing: [] },
    series: dependency('identity-provider', [1, 60]),
  },
  {
    ...{ alert: 'FormgateIdentityProviderDown', when: 'a restart of a minute', at: 12, firing: [] },
    series: dependency('identity-provider', [1, 10], [0, 1], [1, 10]),
  },
];

const outbox = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_outbox_oldest_undelivered_seconds', { kind: 'form-submitted' })]: gauge(...parts),
  [series('formgate_outbox_oldest_undelivered_seconds', { kind: 'form-submitted', pod: 'forms-2' })]: gauge(...parts),
});

const queued = (queue: string, ...parts: Parameters<typeof gauge>) => ({
  [series('formgate_jobs_oldest_waiting_seconds', { queue, job: 'platform-server', pod: 'p-1' })]: gauge(...parts),
  [series('formgate_jobs_oldest_waiting_seconds', { queue, job: 'platform-server', pod: 'p-2' })]: gauge(...parts),
});
const platformJobs: AlertCase[] = [
  {
    ...{ alert: 'FormgateJobsStuck', when: 'events wait for an hour and are not routed', at: 30 },
    series: { ...queued('events', [0, 10], [3_600, 30]), ...queued('deliveries', [0, 40]) },
    firing: [{ ...warning, queue: 'events' }],
  },
  {
    ...{ alert: 'FormgateJobsStuck', when: 'notices wait for an hour and are not delivered', at: 30 },
    series: { ...queued('events', [0, 40]), ...queued('deliveries', [0, 10], [3_600, 30]) },
    firing: [{ ...warning, queue: 'deliveries' }],
  },
  {
    ...{ alert: 'FormgateJobsStuck', when: 'the queues are empty', at: 30, firing: [] },
    series: queued('events', [0, 30]),
  },
  {
    ...{
      alert: 'FormgateJobsStuck',
      when: 'a refused notice waits for half an hour, until its quarantine',
      at: 30,
      firing: [],
    },
    series: queued('deliveries', [0, 10], [1_900, 30]),
  },
  {
    ...{ alert: 'FormgateJobsStuck', when: 'Postgres cannot be read for a while', at: 20, firing: [] },
    series: queued('events', [0, 10], [undefined, 20]),
  },
];

const succeeded = (pod: string, at: number, minutes: number) => ({
  [series('formgate_reconciler_last_success_timestamp_seconds', { part: 'expire', pod })]: gauge([at, minutes]),
});
/** At each sample, the expiry has just succeeded. The series begins after 0, which stands for no success. */
const everySuccess = {
  [series('formgate_reconciler_last_success_timestamp_seconds', { part: 'expire' })]: '1+30x200',
};
/** Runs that include the part have failed since this minute. */
const neverSucceeded = (part: string, since = 1) => ({
  [series('formgate_reconciler_last_success_timestamp_seconds', { part })]: gauge([undefined, since], [0, 120]),
});
const undelivered = { [series('formgate_outbox_undelivered', { kind: 'form-submitted' })]: gauge([0, 120]) };

const reconciler: AlertCase[] = [
  {
    ...{ alert: 'FormgateOutboxStuck', when: 'an event waits for twenty minutes', at: 30 },
    series: outbox([0, 10], [1_200, 20]),
    firing: [{ ...warning, kind: 'form-submitted' }],
  },
  { ...{ alert: 'FormgateOutboxStuck', when: 'all is delivered', at: 30, firing: [] }, series: outbox([0, 30]) },
  {
    ...{ alert: 'FormgateOutboxStuck', when: 'an outage of nine minutes', at: 20, firing: [] },
    series: outbox([0, 10], [540, 10]),
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'the CronJob is suspended', at: 90 },
    series: { ...undelivered, ...succeeded('forms-1', 600, 120), ...succeeded('forms-2', 600, 120) },
    firing: [{ ...warning, part: 'expire' }],
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'no run ever succeeded', at: 90 },
    ...{ series: undelivered, firing: [{ ...warning, part: 'expire' }] },
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'no sync of core clients ever succeeded', at: 90 },
    series: { ...undelivered, ...everySuccess, ...neverSucceeded('clients') },
    firing: [{ ...warning, part: 'clients' }],
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'all runs since the installation failed', at: 90 },
    series: { ...undelivered, ...neverSucceeded('expire'), ...neverSucceeded('clients') },
    firing: [
      { ...warning, part: 'expire' },
      { ...warning, part: 'clients' },
    ],
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'the first syncs of core clients failed', at: 80, firing: [] },
    series: { ...undelivered, ...everySuccess, ...neverSucceeded('clients', 60) },
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'runs succeed', at: 90, firing: [] },
    series: { ...undelivered, ...everySuccess },
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'four runs failed', at: 55, firing: [] },
    series: { ...undelivered, ...succeeded('forms-1', 600, 120) },
  },
  {
    ...{ alert: 'FormgateReconcilerLate', when: 'a new release, before its first run', at: 20, firing: [] },
    series: undelivered,
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'a draft is two days overdue', at: 60, firing: [warning] },
    series: plainGauge('formgate_oldest_overdue_draft_seconds', [2 * day, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'a deletion is overdue', at: 60, firing: [warning] },
    series: plainGauge('formgate_overdue_deletions', [1, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'nothing is overdue', at: 60, firing: [] },
    series: plainGauge('formgate_oldest_overdue_draft_seconds', [0, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'the next run locks the draft', at: 45, firing: [] },
    series: plainGauge('formgate_oldest_overdue_draft_seconds', [2 * day, 20], [0, 40]),
  },
];

const storage: AlertCase[] = [
  {
    ...{ alert: 'FormgateTenantStorage', when: 'a tenant is near its limit', at: 60, firing: [warning] },
    series: plainGauge('formgate_tenants_near_storage_limit', [1, 60]),
  },
  {
    ...{ alert: 'FormgateTenantStorage', when: 'no tenant is near its limit', at: 60, firing: [] },
    series: plainGauge('formgate_tenants_near_storage_limit', [0, 60]),
  },
  {
    ...{ alert: 'FormgateTenantStorage', when: 'deletions have made room', at: 45, firing: [] },
    series: plainGauge('formgate_tenants_near_storage_limit', [1, 30], [0, 30]),
  },
];

const quarantined = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_quarantined_items', { kind: 'lock', reason: 'database-refused' })]: gauge(...parts),
  [series('formgate_quarantined_items', { kind: 'lock', reason: 'database-refused', pod: 'forms-2' })]: gauge(...parts),
});
const postgres = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_dependency_up', { dependency: 'postgres' })]: gauge(...parts),
});

const quarantine: AlertCase[] = [
  {
    ...{ alert: 'FormgateQuarantineGrowing', when: 'a first item', at: 66, firing: [{ ...warning, job: 'forms' }] },
    series: { ...postgres([1, 120]), ...quarantined([undefined, 60], [1, 60]) },
  },
  {
    ...{ alert: 'FormgateQuarantineGrowing', when: 'further items', at: 66, firing: [{ ...warning, job: 'forms' }] },
    series: { ...postgres([1, 120]), ...quarantined([3, 60], [5, 60]) },
  },
  { ...{ alert: 'FormgateQuarantineGrowing', when: 'no item', at: 60, firing: [] }, series: postgres([1, 120]) },
  {
    ...{ alert: 'FormgateQuarantineGrowing', when: 'known items', at: 110, firing: [] },
    series: { ...postgres([1, 120]), ...quarantined([3, 120]) },
  },
  {
    ...{ alert: 'FormgateQuarantineGrowing', when: 'known items after an outage of Postgres', at: 90, firing: [] },
    series: { ...postgres([1, 60], [0, 15], [1, 60]), ...quarantined([3, 60], [undefined, 15], [3, 60]) },
  },
  {
    ...{ alert: 'FormgateQuarantineGrowing', when: 'the count is missing for a while', at: 90, firing: [] },
    series: { ...postgres([1, 120]), ...quarantined([3, 60], [undefined, 15], [3, 60]) },
  },
];

export const backgroundCases: AlertCase[] = [
  down,
  [oneOfTwo],
  dependencies,
  platformJobs,
  reconciler,
  storage,
  quarantine,
].flat();
