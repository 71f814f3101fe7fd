// Watches the exports to the collector: counts those that fail, and logs when the collector becomes unreachable and
// when it is back. The log has the status or the code of the failure, never the collector's response or a header.
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from '../operations/log.ts';

export interface WatchedExporter extends SpanExporter {
  readonly failures: number;
}

export function watchExports(exporter: SpanExporter, log: Logger): WatchedExporter {
  let failures = 0;
  let isDown = false;
  function note(error: unknown, isSuccess: boolean): void {
    if (isSuccess && isDown) log.info('trace exports work again');
    if (!isSuccess) failures += 1;
    if (!isSuccess && !isDown) log.warn({ reason: reasonOf(error) }, 'trace export failed');
    isDown = !isSuccess;
  }
  return {
    get failures() {
      return failures;
    },
    export(spans: ReadableSpan[], done) {
      exporter.export(spans, (result) => {
        // 0 is ExportResultCode.SUCCESS.
        note(result.error, result.code === 0);
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}

/** Returns an HTTP status, or the code of a network error. */
function reasonOf(error: unknown): string | number {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error ? error.code : undefined;
  if (typeof code === 'number' || (typeof code === 'string' && /^\w+$/.test(code))) return code;
  return error.message === 'Request timed out' ? 'timeout' : error.name;
}
