// Situations for the alerts about service level objectives: burn rates that must raise an alert, and burn rates that
// must not.
import { type AlertCase, counter, type Part, series } from './series.ts';

type Traffic = { good: Part[]; bad: Part[] };

/**
 * A service level indicator. Builds its metrics from the number of requests that meet the objective and the number of
 * requests that miss it.
 */
interface Indicator {
  alert: string;
  sli: string;
  series(traffic: Traffic, labels?: Record<string, string>): Record<string, string>;
}

const statuses =
  (route: string) =>
  ({ good, bad }: Traffic, labels = {}) => ({
    [series('formgate_http_requests_total', { route, method: 'GET', status: '2xx', ...labels })]: counter(...good),
    [series('formgate_http_requests_total', { route, method: 'GET', status: '5xx', ...labels })]: counter(...bad),
  });

const durations =
  (metric: string, le: string, names: Record<string, string>) =>
  ({ good, bad }: Traffic, labels = {}) => ({
    [series(`${metric}_bucket`, { ...names, le, ...labels })]: counter(...good),
    [series(`${metric}_count`, { ...names, ...labels })]: counter(...together(good, bad)),
  });

/** Adds up good and bad requests. Both lists have parts of the same lengths. */
function together(good: Part[], bad: Part[]): Part[] {
  return good.map((part, index) => {
    const other = bad[index];
    if (!('perMinute' in part)) return part;
    return { ...part, perMinute: part.perMinute + (other && 'perMinute' in other ? other.perMinute : 0) };
  });
}

const auth = '/token-handler/v1/clients/:clientId/auth';
const form = '/form/v1/forms/:formId';
const http = 'formgate_http_request_duration_seconds';

const indicators: Indicator[] = [
  { alert: 'FormgateFormApiAvailability', sli: 'form-api-availability', series: statuses(form) },
  { alert: 'FormgateFormApiLatency', sli: 'form-api-latency', series: durations(http, '1', { route: form }) },
  { alert: 'FormgateSignInAvailability', sli: 'sign-in-availability', series: statuses(auth) },
  { alert: 'FormgateSignInLatency', sli: 'sign-in-latency', series: durations(http, '2.5', { route: auth }) },
  {
    alert: 'FormgateTargetsAvailability',
    sli: 'targets-availability',
    series: ({ good, bad }, labels = {}) => ({
      [series('formgate_proxied_requests_total', { outcome: 'succeeded', target: '', ...labels })]: counter(...good),
      [series('formgate_proxied_requests_total', { outcome: 'timeout', target: '', ...labels })]: counter(...bad),
    }),
  },
  {
    alert: 'FormgateTargetsLatency',
    sli: 'targets-latency',
    // Prometheus 3 writes the label `le` with a decimal point.
    series: durations('formgate_upstream_duration_seconds', '1.0', {}),
  },
];

const flow = (minutes: number, perMinute: number): Part => ({ minutes, perMinute });
const steady = (minutes: number, share: number): Traffic => ({
  good: [flow(minutes, 600 * (1 - share))],
  bad: [flow(minutes, 600 * share)],
});

/** Returns the share of bad requests that burns the error budget at `factor` times the allowed rate. */
const shareOf = ({ alert }: Indicator, factor: number) => factor * (alert.endsWith('Latency') ? 0.01 : 0.001);

function casesOf(indicator: Indicator): AlertCase[] {
  const { alert, sli } = indicator;
  const critical = { severity: 'critical', sli };
  const warning = { severity: 'warning', sli };
  // Counts only critical alerts: the history of these cases is so short that the long windows of warnings would contain
  // only the incident.
  const one = (when: string, traffic: Traffic, at: number, firing: Record<string, string>[]): AlertCase => ({
    ...{ alert, when, at, firing, severity: 'critical' },
    series: indicator.series(traffic),
  });
  const burning = shareOf(indicator, 50);
  const burst = Math.min(1, shareOf(indicator, 500));
  const withPauses = (pause: Part[]): Part[] => [flow(60, 600), ...pause, flow(30, 600), ...pause, flow(30, 600)];
  const without = (pause: Part[]): Part[] => [flow(60, 0), ...pause, flow(30, 0), ...pause, flow(30, 0)];
  const failing = (pause: Part[]): Part[] => [flow(60, 600), ...pause, flow(30, 600), ...pause, flow(30, 600)];
  return [
    one('many requests fail for half an hour', steady(30, burning), 30, [critical]),
    one('all is well', steady(120, shareOf(indicator, 0.5)), 120, []),
    one('no request fails', { good: [flow(120, 600)], bad: [flow(120, 0)] }, 120, []),
    one(
      'the failures have ended',
      { good: [...steady(30, burning).good, flow(45, 600)], bad: [...steady(30, burning).bad, flow(45, 0)] },
      70,
      [],
    ),
    one(
      'a short burst',
      {
        good: [flow(120, 600), flow(0.5, 600 * (1 - burst)), flow(20, 600)],
        bad: [flow(120, 0), flow(0.5, 600 * burst), flow(20, 0)],
      },
      123,
      [],
    ),
    one('little traffic, all of which fails', { good: [flow(60, 0)], bad: [flow(60, 0.1)] }, 60, []),
    one(
      'restarts, and no failure',
      { good: withPauses([{ restart: true }]), bad: without([{ restart: true }]) },
      118,
      [],
    ),
    one('restarts during failures', { good: without([{ restart: true }]), bad: failing([{ restart: true }]) }, 118, [
      critical,
    ]),
    one(
      'gaps in the scrapes, and no failure',
      { good: withPauses([{ minutes: 4, gap: true }]), bad: without([{ minutes: 4, gap: true }]) },
      118,
      [],
    ),
    {
      ...{ alert, when: 'another release fails', at: 60, firing: [] },
      series: { ...indicator.series(steady(60, 0)), ...indicator.series(steady(60, burning), { release: 'other' }) },
    },
    {
      ...{ alert, when: 'one of two pods fails', at: 60, firing: [critical], severity: 'critical' },
      series: { ...indicator.series(steady(60, 0)), ...indicator.series(steady(60, burning), { pod: 'forms-2' }) },
    },
    {
      ...{ alert, when: 'a few failures for hours', at: 150, firing: [warning] },
      series: indicator.series(steady(150, shareOf(indicator, 4))),
    },
    {
      ...{ alert, when: 'fewer failures than the objective allows, for hours', at: 150, firing: [] },
      series: indicator.series(steady(150, shareOf(indicator, 0.8))),
    },
  ];
}

/** Uploads, whose duration is mostly that of the client's connection. */
const slowUploads: AlertCase = {
  ...{ alert: 'FormgateFormApiLatency', when: 'applicants with slow connections upload files', at: 150, firing: [] },
  series: {
    ...durations(http, '1', { route: form })(steady(150, 0)),
    ...durations(http, '1', { route: '/apply/api/tenants/:tenant/forms/:formId/files' })(steady(150, 1)),
  },
};

export const objectiveCases: AlertCase[] = [...indicators.flatMap(casesOf), slowUploads];
