// Panels about the pods and their Node.js processes, for several dashboards.
import type { PanelText, RowText } from './panels.ts';
import type { Queries } from './queries.ts';

export function runningPods(queries: Queries): RowText {
  return {
    title: 'Pods: are they healthy, and what do they run?',
    panels: [
      {
        title: 'Versions',
        question: 'How many pods of each service run which version?',
        queries: [queries.count('formgate_build_info', { by: ['job', 'version', 'node'] })],
        show: 'table',
      },
      {
        title: 'Time since the start',
        question: 'Did a pod restart?',
        queries: [queries.since('process_start_time_seconds', { by: ['pod'] })],
      },
      {
        title: 'Pods without requests',
        question: 'Which pods are not ready, and why? A pod that drains is stopping.',
        queries: [queries.max('formgate_unready', { by: ['pod', 'reason'] })],
        limits: { red: 1 },
        runbooks: ['service-down'],
      },
      eventLoop(queries),
      {
        title: 'Error of the clock',
        question: 'Does the clock of a pod differ from that of Postgres?',
        queries: [queries.max('formgate_clock_offset_seconds', { by: ['pod'] })],
        mayBeNegative: true,
        runbooks: ['clock-wrong'],
      },
      {
        title: 'Processors in use',
        question: 'How much of a processor does each pod use?',
        queries: [queries.growth('process_cpu_seconds_total', { by: ['pod'] })],
      },
      {
        title: 'Memory',
        question: 'How much memory does each pod use, and does it grow without end?',
        queries: [queries.max('process_resident_memory_bytes', { by: ['pod'] })],
      },
    ],
  };
}

/** Returns the panels about the state of the Node.js processes. */
export function nodeProcesses(queries: Queries): PanelText[] {
  return [
    eventLoop(queries),
    {
      title: 'Heap in use',
      question: 'Does the memory of a pod grow without end?',
      queries: [queries.max('nodejs_heap_size_used_bytes', { by: ['pod'] })],
    },
    {
      title: 'Time in garbage collection',
      question: 'Does garbage collection take a large share of the time of a pod?',
      queries: [queries.busy('nodejs_gc_duration_seconds', { by: ['pod'] })],
    },
    {
      title: 'Lost log lines',
      question: 'Were log lines lost, among them audit events, because nobody read the standard output?',
      queries: [queries.perMinute('formgate_log_lines_dropped_total', { by: ['pod'] })],
    },
    {
      title: 'Failed exports of traces',
      question: 'Do the traces reach the collector? Always 0 if none is configured.',
      queries: [queries.perMinute('formgate_trace_export_failures_total', { by: ['pod'] })],
    },
  ];
}

function eventLoop(queries: Queries): PanelText {
  return {
    title: 'Delay of the event loop',
    question: 'Does a pod respond late because its processor is busy?',
    queries: [queries.max('nodejs_eventloop_lag_p99_seconds', { by: ['pod'] })],
    limits: { yellow: 0.1, red: 0.5 },
    runbooks: ['event-loop-blocked'],
  };
}
