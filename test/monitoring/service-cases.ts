// Situations for the alerts about refreshes, registrations, keys, sign-ins, codes, clocks and the event loop:
// incidents, the normal case and near misses.
import {
  type AlertCase,
  counter,
  critical,
  day,
  flow,
  gauge,
  handler,
  type Part,
  plainGauge,
  series,
  warning,
} from './series.ts';

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

const keyAge = (...parts: Parameters<typeof gauge>) =>
  plainGauge('formgate_key_ring_current_key_age_seconds', ...parts);
const expires = (inSeconds: number, certificate = 'redis', minutes = 120) => ({
  [series('formgate_certificate_expiry_timestamp_seconds', { certificate })]: gauge([inSeconds, minutes]),
});
const ofServer = { job: 'forms', certificate: 'redis' };
const ofAuthority = { job: 'forms', certificate: 'redis-ca' };
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
    ...{
      alert: 'FormgateCertificateExpiring',
      when: 'ten days are left',
      at: 90,
      firing: [{ ...warning, ...ofServer }],
    },
    series: expires(10 * day),
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'a day is left', at: 90 },
    ...{ series: expires(day), firing: [critical, warning].map((severity) => ({ ...severity, ...ofServer })) },
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'it has expired', at: 90 },
    ...{ series: expires(-day), firing: [critical, warning].map((severity) => ({ ...severity, ...ofServer })) },
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'a trusted authority has a day left', at: 90 },
    ...{ series: expires(day, 'redis-ca'), firing: [{ ...warning, ...ofAuthority }] },
  },
  {
    ...{ alert: 'FormgateCertificateExpiring', when: 'a bundle has an authority that has expired', at: 90, firing: [] },
    series: { ...expires(-day, 'redis-ca'), ...expires(-day, 'extra-ca') },
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
    series: {
      ...{ ...mails('taken', flow(60, 2)), ...mails('refused', flow(60, 2)) },
      ...{ ...codes('sent', flow(60, 2)), ...codes('not-sent', flow(60, 0)), ...codes('undeliverable', flow(60, 2)) },
    },
  },
  {
    ...{ alert: 'FormgateCodesNotDelivered', when: 'a restart resets the counters', at: 62, firing: [] },
    series: {
      ...codes('sent', flow(60, 20), { restart: true }, flow(10, 20)),
      ...codes('not-sent', flow(60, 0.4), { restart: true }, flow(10, 0)),
    },
  },
];

const lag = (...parts: Parameters<typeof gauge>) => plainGauge('nodejs_eventloop_lag_p99_seconds', ...parts);
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

const offset = (...parts: Parameters<typeof gauge>) => plainGauge('formgate_clock_offset_seconds', ...parts);
const wrongClock = [{ ...warning, job: 'forms', pod: 'forms-1' }];
const clocks: AlertCase[] = [
  {
    ...{ alert: 'FormgateClockWrong', when: 'a clock is a minute ahead', at: 20, firing: wrongClock },
    series: offset([0, 10], [60, 20]),
  },
  {
    ...{ alert: 'FormgateClockWrong', when: 'a clock is a minute behind', at: 20, firing: wrongClock },
    series: offset([0, 10], [-60, 20]),
  },
  { ...{ alert: 'FormgateClockWrong', when: 'all is well', at: 20, firing: [] }, series: offset([0.01, 30]) },
  {
    ...{ alert: 'FormgateClockWrong', when: 'NTP has not yet corrected the clock', at: 13, firing: [] },
    series: offset([0, 10], [60, 4], [0, 20]),
  },
  {
    ...{
      alert: 'FormgateClockWrong',
      when: 'a clock is a little more than the threshold ahead',
      at: 16,
      firing: wrongClock,
    },
    series: offset([0, 10], [6, 20]),
  },
  {
    ...{ alert: 'FormgateClockWrong', when: 'a clock is a little less than the threshold ahead', at: 20, firing: [] },
    series: offset([0, 10], [4, 20]),
  },
];

export const serviceCases: AlertCase[] = [refreshing, registrations, secrets, people, clocks, eventLoop].flat();
