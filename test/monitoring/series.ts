// Writes time series in the notation of promtool's unit tests, one sample every 30 seconds, and alert cases.

/** Seconds between two samples. */
const step = 30;

const labelsOfPod = { namespace: 'forms', release: 'formgate', job: 'forms', pod: 'forms-1' };

/** Returns the name of a series with the labels of a pod of the form service. `labels` adds or overrides labels. */
export function series(name: string, labels: Record<string, string> = {}): string {
  const all = Object.entries({ ...labelsOfPod, ...labels }).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${all.join(',')}}`;
}

/** A section of a series: an increase per minute, a gap in the scrapes, or a restart of the process. */
export type Part = { minutes: number; perMinute: number } | { minutes: number; gap: true } | { restart: true };

/** Returns the values of a counter that begins at 0. */
export function counter(...parts: Part[]): string {
  let value = 0;
  const written = parts.flatMap((part) => {
    if ('restart' in part) {
      value = 0;
      return [];
    }
    const samples = Math.round((part.minutes * 60) / step);
    if ('gap' in part) return [`_x${samples}`];
    const increase = (part.perMinute * step) / 60;
    const first = value + increase;
    value += increase * samples;
    return [`${first}+${increase}x${samples - 1}`];
  });
  return ['0', ...written].join(' ');
}

/**
 * Returns the values of a gauge. Each part has a value, or undefined for a gap in the scrapes, and its length in
 * minutes.
 */
export function gauge(...parts: [value: number | undefined, minutes: number][]): string {
  return parts
    .map(([value, minutes]) => {
      const samples = Math.round((minutes * 60) / step);
      return value === undefined ? `_x${samples}` : `${value}+0x${samples - 1}`;
    })
    .join(' ');
}

/** One situation, and the alerts that fire in it. */
export interface AlertCase {
  alert: string;
  /** Description of the situation, for the title of the test. */
  when: string;
  series: Record<string, string>;
  /** Time at which the alerts are checked, in minutes after the first sample. */
  at: number;
  /** If set, only alerts of this severity count. */
  severity?: 'critical';
  /** Labels of the firing alerts, without `alertname`, `alertstate`, `namespace` and `release`. Empty if none fires. */
  firing: Record<string, string>[];
}

/** Returns the file of unit tests for `promtool test rules`. */
export function unitTests(cases: AlertCase[]): string {
  return JSON.stringify({
    rule_files: ['rules.yaml'],
    // The default of Prometheus. Twice as many evaluations take twice as long.
    evaluation_interval: '1m',
    tests: cases.map((one) => ({
      interval: `${step}s`,
      name: `${one.alert}: ${one.when}`,
      input_series: Object.entries(one.series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: `ALERTS{alertname="${one.alert}",alertstate="firing",severity=~"${one.severity ?? '.+'}"}`,
          eval_time: `${one.at}m`,
          exp_samples: one.firing.map((labels) => ({ labels: alertSeries(one.alert, labels), value: 1 })),
        },
      ],
    })),
  });
}

function alertSeries(alertname: string, labels: Record<string, string>): string {
  const all = { alertname, alertstate: 'firing', namespace: 'forms', release: 'formgate', ...labels };
  return `ALERTS{${Object.entries(all)
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')}}`;
}

export const critical = { severity: 'critical' };
export const warning = { severity: 'warning' };

/** Seconds in a day. */
export const day = 86_400;

/** Labels of a pod of the token handler. */
export const handler = { job: 'token-handler', pod: 'token-handler-1' };

export const flow = (minutes: number, perMinute: number): Part => ({ minutes, perMinute });

/** Returns a gauge with only the labels of a pod of the form service. */
export const plainGauge = (name: string, ...parts: Parameters<typeof gauge>) => ({ [series(name)]: gauge(...parts) });
