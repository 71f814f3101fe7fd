// Metrics that are on no dashboard, and why. A test checks that each metric of the catalogue is either on a dashboard
// or in this list.

/** Patterns that match whole names of metrics, each with the reason. */
export const leftOut: readonly (readonly [RegExp, string])[] = [
  [/^process_cpu_(user|system)_seconds_total$/, 'process_cpu_seconds_total is their sum.'],
  [/^process_virtual_memory_bytes$/, 'Node.js reserves addresses that it never uses.'],
  [/^process_heap_bytes$/, 'nodejs_heap_size_used_bytes and process_resident_memory_bytes tell more.'],
  [/^process_(open|max)_fds$/, 'Connections are limited by pools, which have panels.'],
  [
    /^nodejs_eventloop_lag_(min_|max_|mean_|stddev_|p50_|p90_)?seconds$/,
    'The 99th percentile shows what requests feel; the others are for a closer look.',
  ],
  [/^nodejs_active_\w+$/, 'Numbers of handles and requests inside Node.js are for developers.'],
  [
    /^nodejs_heap_(size_total|space_size_(total|used|available))_bytes$/,
    'The part of the heap that is in use shows a leak.',
  ],
  [/^nodejs_external_memory_bytes$/, 'It is part of process_resident_memory_bytes.'],
  [/^nodejs_version_info$/, 'formgate_build_info has the version of Node.js, too.'],
];
