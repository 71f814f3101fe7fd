// Writes a core client that Formgate itself maintains, such as builder-preview, to the core configuration. Changes no
// other client.
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../platform/configuration.ts';
import { type ClientEntry, clientsName, clientsNamespace } from '../../service/clients/client-rules.ts';
import { isObject } from '../../service/json-value.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';

export interface MaintainedClientOptions {
  configuration: Pick<Configuration, 'read' | 'update'>;
  log: Logger;
}

/** Writes the client `wanted` unless the stored client is identical. Throws PlatformError. */
export async function writeMaintainedClient(wanted: ClientEntry, options: MaintainedClientOptions): Promise<void> {
  const { configuration, log } = options;
  const { latest } = await configuration.read(clientsNamespace, clientsName, { core: true });
  const document = isObject(latest?.configuration) ? latest.configuration : {};
  const present = isObject(document.clients) ? document.clients[wanted.id] : undefined;
  if (isDeepStrictEqual(present, wanted)) return;
  // Writes only this client, so that the update is idempotent.
  const update = { clients: { [wanted.id]: wanted } };
  await configuration.update(clientsNamespace, clientsName, update, { core: true, idempotent: true });
  const audit = serviceEvent({ action: 'client.write', by: 'token-handler', id: wanted.id });
  auditLog(log).info({ client: wanted.id, before: present ?? null, after: wanted, audit }, 'core client written');
}
