// Writes the core client builder-preview, as BUILDER_APP_URL defines it, to the core configuration. It runs in the
// background at every startup until it succeeds, and changes no other client.
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../platform/configuration.ts';
import { failureFields } from '../../platform/platform-error.ts';
import { builderPreview, builderPreviewId, clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import { isObject } from '../../service/json-value.ts';
import type { Logger } from '../../service/operations/log.ts';
import { retryUntilDone } from '../../service/retry.ts';
import type { Urns } from '../../service/urn.ts';

export interface BuilderPreviewOptions {
  builderUrl: string;
  configuration: Pick<Configuration, 'read' | 'update'>;
  urns: Pick<Urns, 'service'>;
  log: Logger;
  /** Most milliseconds before the first retry; doubled after each failure, up to a minute. */
  firstDelay?: number | undefined;
}

export interface RunningWrite {
  /** True when it is written, false after `stop`. Never rejects. */
  readonly done: Promise<boolean>;
  stop(): void;
}

export function writeBuilderPreview(options: BuilderPreviewOptions): RunningWrite {
  const { log, firstDelay: first = 1_000 } = options;
  const stopping = new AbortController();
  const done = retryUntilDone(() => writeDifference(options), {
    backoff: { first, cap: 60_000 },
    signal: stopping.signal,
    onFailure(error, retryInMs) {
      log.warn({ client: builderPreviewId, retryInMs, ...failureFields(error) }, 'a core client cannot be written');
    },
  });
  return { done, stop: () => stopping.abort() };
}

async function writeDifference({ builderUrl, configuration, urns, log }: BuilderPreviewOptions): Promise<void> {
  const wanted = builderPreview(builderUrl, urns);
  const { latest } = await configuration.read(clientsNamespace, clientsName, { core: true });
  const document = isObject(latest?.configuration) ? latest.configuration : {};
  const present = isObject(document.clients) ? document.clients[builderPreviewId] : undefined;
  if (isDeepStrictEqual(present, wanted)) return;
  // Replaces this client only, so a retry changes nothing.
  const update = { clients: { [builderPreviewId]: wanted } };
  await configuration.update(clientsNamespace, clientsName, update, { core: true, idempotent: true });
  log.info({ client: builderPreviewId, before: present ?? null, after: wanted }, 'a core client was written');
}
