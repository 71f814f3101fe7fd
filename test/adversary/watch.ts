// Watches the replicas as a cluster does: whether they respond to the liveness probe, and whether they stay ready.
import { setTimeout as delay } from 'node:timers/promises';
import type { Replica } from './world/replica.ts';

export interface Watch {
  /**
   * Returns a line for each running replica that was blocked or not ready, with the first phase in which this happened.
   */
  findings(): string[];
  stop(): Promise<void>;
}

/**
 * Milliseconds. A longer block of the event loop is a defect, although the chart restarts a blocked pod only after
 * about a minute.
 */
const longestBlock = 5_000;
const interval = 500;

export function watchReplicas(replicas: Replica[], phase: () => string): Watch {
  const stopping = new AbortController();
  const found = new Map<string, string>();
  const note = (what: string) => {
    if (!stopping.signal.aborted && !found.has(what)) found.set(what, phase());
  };

  async function watch({ place, pid }: Replica): Promise<void> {
    const base = `http://127.0.0.1:${place.metricsPort}`;
    let wasReady: number | undefined;
    while (!stopping.signal.aborted) {
      const id = pid();
      const started = performance.now();
      const alive = await probe(`${base}/livez`, 2 * longestBlock);
      // Ignore probes during which the process was replaced.
      if (id !== undefined && id === pid() && performance.now() - started > longestBlock)
        note(`${place.name} did not respond to its liveness probe for ${longestBlock / 1_000} s`);
      const { status, text } = alive.status === 200 ? await probe(`${base}/readyz`, 2 * longestBlock) : alive;
      if (status === 200) wasReady = id;
      if (status === 503 && id !== undefined && wasReady === id && id === pid())
        note(`${place.name} was not ready while it ran: ${text.slice(0, 200)}`);
      await delay(interval);
    }
  }

  const watching = Promise.all(replicas.map(watch));
  return {
    findings: () => [...found].map(([what, when]) => `${what} (${when})`),
    async stop() {
      stopping.abort();
      await watching;
    },
  };

  function probe(url: string, patience: number): Promise<{ status: number; text: string }> {
    return fetch(url, { signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(patience)]) }).then(
      async (response) => ({ status: response.status, text: await response.text() }),
      () => ({ status: 0, text: '' }),
    );
  }
}
