// `npm run bench -- NAME`: measures a part of Formgate against plain alternatives in one run.
import { benchAll } from './all.ts';
import { benchExpiry } from './expiry.ts';
import { benchForms } from './forms.ts';
import { benchProxy } from './proxy.ts';
import { benchStart } from './start.ts';
import { benchTraces } from './traces.ts';
import { benchVersions } from './versions.ts';

const benches: Record<string, { about: string; run(argument?: string): Promise<unknown> }> = {
  all: {
    about: 'start, proxy, forms and expiry in one run, with goals; adds a report to docs/benchmarks',
    run: benchAll,
  },
  start: {
    about: 'time until each service listens, and its memory when it is idle',
    run: () => benchStart(),
  },
  forms: {
    about: 'PUT and GET of form data against a minimal Express handler and the bare SQL: CPU, latency, memory',
    run: () => benchForms(),
  },
  expiry: {
    about: 'the reconciler: outbox rows, scale, memory, the outbox dispatcher, concurrent saves (BENCH_DRAFTS)',
    run: () => benchExpiry(),
  },
  proxy: {
    about: 'proxied requests with a session against plain proxies and nginx: CPU, latency, memory, idle streams',
    run: () => benchProxy(),
  },
  traces: {
    about: 'proxied requests with and without traces, and against another checkout (traces DIRECTORY): CPU',
    run: benchTraces,
  },
  versions: {
    about:
      'proxy and forms against another checkout (versions DIRECTORY), interleaved, with confidence intervals (BENCH_RUNS)',
    run: benchVersions,
  },
};

const [name = '--help', argument] = process.argv.slice(2);
const bench = benches[name];
if (bench) {
  await bench.run(argument);
  process.exit(0);
}
const list = Object.entries(benches).map(([key, { about }]) => `  ${key.padEnd(8)} ${about}`);
console.log(
  `Usage: npm run bench -- NAME\n\n${list.join('\n')}\n\nBENCH_STARTS, BENCH_ROUNDS, BENCH_REQUESTS, BENCH_WARM_UP, BENCH_SLICES and BENCH_STREAMS set the length.`,
);
process.exit(name === '--help' ? 0 : 1);
