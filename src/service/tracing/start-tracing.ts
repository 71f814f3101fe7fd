// Starts tracing in a process, if a collector is configured. OpenTelemetry is loaded only here, by a dynamic import.
import type { Logger } from '../operations/log.ts';
import { installTracing, type Tracing } from './tracing.ts';
import type { TracingSettings } from './tracing-fields.ts';

/**
 * Starts tracing if `config` names a collector. Call this function once, before the process creates its objects. `name`
 * is the default of OTEL_SERVICE_NAME.
 */
export async function startTracing(name: string, config: TracingSettings, log: Logger): Promise<Tracing | undefined> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  const { createTracing } = await import('./opentelemetry.ts');
  const tracing = createTracing({ name, endpoint, config, log });
  installTracing(tracing);
  return tracing;
}
