// The core client builder-preview: written to the core configuration at every startup, in the background, until it
// stands there as BUILDER_APP_URL says. It blocks nothing and touches no other client.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { builderPreview, builderPreviewId, clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Urns } from '../../service/urn.ts';

export interface BuilderPreviewOptions {
  builderUrl: string;
  configuration: Pick<Configuration, 'read' | 'update'>;
  urns: Pick<Urns, 'service'>;
  log: Logger;
  /** Milliseconds before the second try; each further wait is twice as long, up to a minute. */
  firstDelay?: number | undefined;
}

export interface RunningWrite {
  /** Settles when it is written, or after `stop`. Never rejects. */
  readonly done: Promise<void>;
  stop(): void;
}

export function writeBuilderPreview(options: BuilderPreviewOptions): RunningWrite {
  const stopping = new AbortController();
  return { done: writeUntilDone(options, stopping.signal), stop: () => stopping.abort() };
}

async function writeUntilDone(options: BuilderPreviewOptions, signal: AbortSignal): Promise<void> {
  const { log, firstDelay = 1_000 } = options;
  for (let wait = firstDelay; !signal.aborted; wait = Math.min(wait * 2, 60_000)) {
    try {
      await writeDifference(options);
      return;
    } catch (error) {
      const why = error instanceof PlatformError ? { kind: error.kind, dependency: error.service } : { err: error };
      log.warn({ client: builderPreviewId, retryInMs: wait, ...why }, 'a core client cannot be written');
    }
    await sleep(wait * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

async function writeDifference({ builderUrl, configuration, urns, log }: BuilderPreviewOptions): Promise<void> {
  const wanted = builderPreview(builderUrl, urns);
  const { latest } = await configuration.read(clientsNamespace, clientsName, { core: true });
  const present = member(member(latest?.configuration, 'clients'), builderPreviewId);
  if (isDeepStrictEqual(present, wanted)) return;
  // The client replaces its namesake among the clients, which keep their other members: a repeat changes nothing.
  const update = { clients: { [builderPreviewId]: wanted } };
  await configuration.update(clientsNamespace, clientsName, update, { core: true, idempotent: true });
  log.info({ client: builderPreviewId, before: present ?? null, after: wanted }, 'a core client was written');
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
