// Defines a metric that shows why a pod is not ready.
import prom from 'prom-client';

export interface ReadinessMetricsOptions {
  registry: prom.Registry;
  /** The possible reasons: `draining`, and the names of all conditions. */
  reasons: string[];
  report(): Promise<{ draining: boolean; waitingFor: Record<string, string> }>;
}

export function createReadinessMetrics({ registry, reasons, report }: ReadinessMetricsOptions): void {
  new prom.Gauge({
    name: 'formgate_unready',
    help: '1 for each reason why the pod is not ready, else 0',
    labelNames: ['reason'],
    registers: [registry],
    async collect() {
      const { draining, waitingFor } = await report();
      for (const reason of reasons) {
        const holds = reason === 'draining' ? draining : waitingFor[reason] !== undefined;
        this.set({ reason }, Number(holds));
      }
    },
  });
}
