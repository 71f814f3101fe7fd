// Situations for the alerts of causes: incidents, the normal case and near misses.
import { type AlertCase, counter, gauge, type Part, series } from './series.ts';

const flow = (minutes: number, perMinute: number): Part => ({ minutes, perMinute });
const critical = { severity: 'critical' };
const warning = { severity: 'warning' };
const day = 86_400;

const handler = { job: 'token-handler', pod: 'token-handler-1' };

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

const succeeded = (pod: string, at: number, minutes: number) => ({
  [series('formgate_reconciler_last_success_timestamp_seconds', { part: 'expire', pod })]: gauge([at, minutes]),
});
const undelivered = { [series('formgate_outbox_undelivered', { kind: 'form-submitted' })]: gauge([0, 120]) };
const overdue = (name: string, ...parts: Parameters<typeof gauge>) => ({ [series(name)]: gauge(...parts) });

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
    ...{ alert: 'FormgateReconcilerLate', when: 'runs succeed', at: 90, firing: [] },
    series: {
      ...undelivered,
      [series('formgate_reconciler_last_success_timestamp_seconds', { part: 'expire' })]: '0+30x200',
    },
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
    series: overdue('formgate_oldest_overdue_draft_seconds', [2 * day, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'a deletion is overdue', at: 60, firing: [warning] },
    series: overdue('formgate_overdue_deletions', [1, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'nothing is overdue', at: 60, firing: [] },
    series: overdue('formgate_oldest_overdue_draft_seconds', [0, 60]),
  },
  {
    ...{ alert: 'FormgateDraftsOverdue', when: 'the next run locks the draft', at: 45, firing: [] },
    series: overdue('formgate_oldest_overdue_draft_seconds', [2 * day, 20], [0, 40]),
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

const refreshes = (outcome: string, ...parts: Part[]) => ({
  [series('formgate_token_refreshes_total', { outcome, ...handler })]: counter(...parts),
});
const refreshing: AlertCase[] = [
  {
    ...{ alert: 'FormgateRefreshesFailing', when: 'a third of the refreshes fails', at: 60, firing: [critical] },
    series: { ...refreshes('refreshed', flow(60, 4)), ...refreshes('client-refused', flow(60, 2)) },
  },
  {
    ...{ alert: 'FormgateRefreshesFailing', when: 'all is well', at: 60, firing: [] },
    series: { ...refreshes('refreshed', flow(60, 40)), ...refreshes('unknown', flow(60, 0.4)) },
  },
  {
    ...{ alert: 'FormgateRefreshesFailing', when: 'sessions ended at the identity provider', at: 60, firing: [] },
    series: { ...refreshes('refreshed', flow(60, 4)), ...refreshes('refused', flow(60, 2)) },
  },
  {
    ...{ alert: 'FormgateRefreshesFailing', when: 'two of three refreshes fail in a quiet night', at: 60, firing: [] },
    series: { ...refreshes('refreshed', flow(60, 0.1)), ...refreshes('unknown', flow(60, 0.2)) },
  },
  {
    ...{ alert: 'FormgateRefreshesFailing', when: 'a restart resets the counters', at: 62, firing: [] },
    series: {
      ...refreshes('refreshed', flow(60, 40), { restart: true }, flow(20, 40)),
      ...refreshes('unknown', flow(60, 0.4), { restart: true }, flow(20, 0)),
    },
  },
];

const repairs = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_platform_registration_repairs_total', { document: 'notification-type' })]: gauge(...parts),
});
const missing = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_platform_registration_pending', { document: 'notification-type' })]: gauge(...parts),
});
const repaired = [{ ...warning, job: 'forms', document: 'notification-type' }];
const registrations: AlertCase[] = [
  {
    ...{ alert: 'FormgateRegistrationRepaired', when: 'a counter grows', at: 190, firing: repaired },
    series: repairs([0, 180], [1, 60]),
  },
  {
    ...{ alert: 'FormgateRegistrationRepaired', when: 'the series begins with 1', at: 190, firing: repaired },
    series: repairs([undefined, 180], [1, 60]),
  },
  {
    ...{ alert: 'FormgateRegistrationRepaired', when: 'the repair was two hours ago', at: 310, firing: [] },
    series: repairs([0, 180], [1, 180]),
  },
  {
    ...{ alert: 'FormgateRegistrationRepaired', when: 'a pod restarts after a repair', at: 310, firing: [] },
    series: repairs([1, 300], [0, 60]),
  },
  {
    ...{ alert: 'FormgateRegistrationRepaired', when: 'a gap in the scrapes, an hour ago', at: 365, firing: [] },
    series: repairs([1, 300], [undefined, 10], [1, 100]),
  },
  {
    ...{ alert: 'FormgateRegistrationMissing', when: 'a document is not written', at: 30 },
    ...{ series: missing([1, 40]), firing: [{ ...warning, job: 'forms' }] },
  },
  {
    ...{ alert: 'FormgateRegistrationMissing', when: 'a service works with an old configuration', at: 30 },
    series: { [series('formgate_platform_registration_unknown', { dependency: 'event-service' })]: gauge([1, 40]) },
    firing: [{ ...warning, job: 'forms' }],
  },
  {
    ...{ alert: 'FormgateRegistrationMissing', when: 'all is registered', at: 30, firing: [] },
    series: missing([0, 40]),
  },
  {
    ...{ alert: 'FormgateRegistrationMissing', when: 'ten minutes after a start', at: 25, firing: [] },
    series: missing([1, 10], [0, 30]),
  },
];

const keyAge = (...parts: Parameters<typeof gauge>) => overdue('formgate_key_ring_current_key_age_seconds', ...parts);
const expires = (inSeconds: number, minutes = 120) => ({
  [series('formgate_certificate_expiry_timestamp_seconds', { certificate: 'redis-ca' })]: gauge([inSeconds, minutes]),
});
const ca = { job: 'forms', certificate: 'redis-ca' };
const secrets: AlertCase[] = [
  {
    ...{ alert: 'FormgateKeyRingOld', when: 'a key of 401 days', at: 90, firing: [warning] },
    series: keyAge([401 * day, 90]),
  },
  { ...{ alert: 'FormgateKeyRingOld', when: 'a new key', at: 90, firing: [] }, series: keyAge([day, 90]) },
  {
    ...{ alert: 'FormgateKeyRingOld', when: 'a rotation within the hour', at: 90, firing: [] },
    series: keyAge([401 * day, 45], [0, 45]),
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'ten days are left', at: 90, firing: [{ ...warning, ...ca }] },
    series: expires(10 * day),
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'a day is left', at: 90 },
    ...{ series: expires(day), firing: [critical, warning].map((severity) => ({ ...severity, ...ca })) },
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'a month is left', at: 90, firing: [] },
    series: expires(30 * day),
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'it was renewed within the hour', at: 90, firing: [] },
    series: {
      [series('formgate_certificate_expiry_timestamp_seconds', { certificate: 'redis-ca' })]: gauge(
        [10 * day, 45],
        [90 * day, 45],
      ),
    },
  },
];

const failingClients = (...parts: Parameters<typeof gauge>) => ({
  [series('formgate_sign_in_failing_clients', handler)]: gauge(...parts),
});
const codes = (outcome: string, ...parts: Part[]) => ({
  [series('formgate_codes_total', { outcome })]: counter(...parts),
});
const mails = (outcome: string, ...parts: Part[]) => ({
  [series('formgate_mails_total', { outcome, job: 'platform-server', pod: 'p-1' })]: counter(...parts),
});
const people: AlertCase[] = [
  {
    ...{ alert: 'FormgateSignInFailingForClient', when: 'a client fails', at: 20, firing: [warning] },
    series: failingClients([0, 10], [1, 20]),
  },
  {
    ...{ alert: 'FormgateSignInFailingForClient', when: 'all is well', at: 20, firing: [] },
    series: failingClients([0, 30]),
  },
  {
    ...{ alert: 'FormgateSignInFailingForClient', when: 'a sign-in succeeds again', at: 20, firing: [] },
    series: failingClients([0, 10], [1, 1], [0, 20]),
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'the notification service fails', at: 30, firing: [critical] },
    series: { ...codes('sent', flow(15, 2), flow(15, 0)), ...codes('not-sent', flow(15, 0), flow(15, 2)) },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'the mail server is down', at: 30, firing: [critical] },
    series: { ...mails('taken', flow(30, 0)), ...mails('failed', flow(15, 0), flow(15, 2)) },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'all is well', at: 60, firing: [] },
    series: { ...codes('sent', flow(60, 20)), ...codes('not-sent', flow(60, 0.4)), ...mails('taken', flow(60, 20)) },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'a single code of a quiet night', at: 60, firing: [] },
    series: { ...codes('sent', flow(60, 0)), ...codes('not-sent', flow(57, 0), flow(0.5, 2), flow(2.5, 0)) },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'addresses that do not exist', at: 60, firing: [] },
    series: { ...mails('taken', flow(60, 2)), ...mails('refused', flow(60, 2)) },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'a restart resets the counters', at: 62, firing: [] },
    series: {
      ...codes('sent', flow(60, 20), { restart: true }, flow(10, 20)),
      ...codes('not-sent', flow(60, 0.4), { restart: true }, flow(10, 0)),
    },
  },
];

const lag = (...parts: Parameters<typeof gauge>) => overdue('nodejs_eventloop_lag_p99_seconds', ...parts);
const eventLoop: AlertCase[] = [
  {
    ...{ alert: 'FormgateEventLoopBlocked', when: 'a second of delay', at: 20 },
    ...{ series: lag([0.02, 10], [1, 20]), firing: [{ ...warning, job: 'forms', pod: 'forms-1' }] },
  },
  { ...{ alert: 'FormgateEventLoopBlocked', when: 'all is well', at: 20, firing: [] }, series: lag([0.02, 30]) },
  {
    ...{ alert: 'FormgateEventLoopBlocked', when: 'a single long step', at: 20, firing: [] },
    series: lag([0.02, 10], [4, 0.5], [0.02, 20]),
  },
];

export const causeCases: AlertCase[] = [
  ...[...down, oneOfTwo, ...dependencies, ...reconciler, ...quarantine, ...refreshing],
  ...[...registrations, ...secrets, ...people, ...eventLoop],
];
