// Runs a real Prometheus that scrapes the product and evaluates the chart's rules, and waits for alerts to begin and
// end.
import { setTimeout as delay } from 'node:timers/promises';
import { type PrometheusServer, startPrometheus } from '../monitoring/prometheus-server.ts';
import { scaledRules } from './scaled-rules.ts';
import { jobs, type World } from './world.ts';

export interface ActiveAlert {
  name: string;
  severity: string;
  state: 'pending' | 'firing';
  annotations: Record<string, string>;
}

export interface AlertWatch {
  active(): Promise<ActiveAlert[]>;
  /**
   * Waits until the alert is in one of `states` or, if the list is empty, until it is inactive. Returns the waited
   * seconds. Throws after `seconds`.
   */
  wait(alert: { alert: string; severity: string }, states: string[], seconds: number): Promise<number>;
  close(): Promise<void>;
}

export async function watchAlerts(world: World): Promise<AlertWatch> {
  const targets = jobs.map((job) => ({
    targets: [`127.0.0.1:${world.metricsPorts[job]}`],
    labels: { job, namespace: 'forms', release: 'formgate', pod: `${job}-0` },
  }));
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [{ job_name: 'formgate', static_configs: targets }],
    rule_files: ['rules.yaml'],
  };
  const prometheus: PrometheusServer = await startPrometheus({
    'prometheus.yml': JSON.stringify(configuration),
    'rules.yaml': scaledRules(),
  });
  const active = async (): Promise<ActiveAlert[]> => {
    const { alerts } = (await prometheus.get('alerts')) as {
      alerts: { labels: Record<string, string>; state: 'pending' | 'firing'; annotations: Record<string, string> }[];
    };
    return alerts.map(({ labels, state, annotations }) => ({
      ...{ name: labels.alertname ?? '', severity: labels.severity ?? '', state, annotations },
    }));
  };
  return {
    active,
    async wait({ alert, severity }, states, seconds) {
      const from = Date.now();
      for (;;) {
        const found = (await active()).filter((one) => one.name === alert && one.severity === severity);
        const isThere = found.some(({ state }) => states.includes(state));
        const passed = (Date.now() - from) / 1_000;
        if (states.length === 0 ? found.length === 0 : isThere) return passed;
        if (passed > seconds) throw new Error(`${alert} was not ${states.join(' or ') || 'inactive'} in ${seconds} s`);
        await delay(200);
      }
    },
    close: () => prometheus.close(),
  };
}
