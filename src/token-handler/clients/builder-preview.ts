// Writes the core client builder-preview, whose addresses come from BUILDER_APP_URL, to the core configuration. Changes
// no other client.
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../platform/configuration.ts';
import { builderPreview, builderPreviewId, clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import { isObject } from '../../service/json-value.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Urns } from '../../service/urn.ts';

export interface BuilderPreviewOptions {
  configuration: Pick<Configuration, 'read' | 'update'>;
  urns: Pick<Urns, 'service'>;
  log: Logger;
}

export async function writeBuilderPreview(builderUrl: string, options: BuilderPreviewOptions): Promise<void> {
  const { configuration, urns, log } = options;
  const wanted = builderPreview(builderUrl, urns);
  const { latest } = await configuration.read(clientsNamespace, clientsName, { core: true });
  const document = isObject(latest?.configuration) ? latest.configuration : {};
  const present = isObject(document.clients) ? document.clients[builderPreviewId] : undefined;
  if (isDeepStrictEqual(present, wanted)) return;
  // Replaces this client only, so the update is idempotent.
  const update = { clients: { [builderPreviewId]: wanted } };
  await configuration.update(clientsNamespace, clientsName, update, { core: true, idempotent: true });
  log.info({ client: builderPreviewId, before: present ?? null, after: wanted }, 'core client written');
}
