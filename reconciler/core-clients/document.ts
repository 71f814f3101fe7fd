// Reads and writes two documents: the core configuration of the token handler, and the record of the clients that this
// reconciler owns in that configuration. Each write names the clients that it changes, so that concurrent changes of
// other clients are kept. This module does not validate clients.
import type { Configuration } from '../../src/platform/configuration.ts';
import { type ClientEntry, clientsName, clientsNamespace } from '../../src/service/clients/client-rules.ts';
import { isObject } from '../../src/service/json-value.ts';

/**
 * The name of the configuration that contains the record of the owned clients: `{<owner>: {clients: {<id>: {since}}}}`.
 */
export const recordName = 'token-handler-core-clients';

export interface CoreDocument {
  /** The revision of the core configuration. Undefined if the configuration does not exist yet. */
  revision: number | undefined;
  /** The members of the property `clients`, keyed by client id. */
  clients: ReadonlyMap<string, unknown>;
  /** The ids at the top level of the document. The token handler reads clients there too. */
  atTop: ReadonlySet<string>;
  /** The ids of the owned clients, each with the time at which its ownership began (ISO 8601). */
  owned: ReadonlyMap<string, string>;
}

export interface ClientDocumentOptions {
  configuration: Pick<Configuration, 'read' | 'update' | 'deleteProperty'>;
  /**
   * The name under which this reconciler records the clients that it owns. Reconcilers with different names never
   * change each other's clients.
   */
  owner: string;
}

const core = { core: true } as const;

export type ClientDocument = ReturnType<typeof createClientDocument>;

/** Every method throws PlatformError. Every write is idempotent. */
export function createClientDocument({ configuration, owner }: ClientDocumentOptions) {
  const update = (name: string, changes: Record<string, unknown>) =>
    configuration.update(clientsNamespace, name, changes, { ...core, idempotent: true });

  return {
    async read(): Promise<CoreDocument> {
      const [{ latest }, record] = await Promise.all([
        configuration.read(clientsNamespace, clientsName, core),
        configuration.read(clientsNamespace, recordName, core),
      ]);
      const document = membersOf(latest?.configuration);
      const owned = membersOf(membersOf(membersOf(record.latest?.configuration).get(owner)).get('clients'));
      return {
        revision: latest?.revision,
        clients: membersOf(document.get('clients')),
        atTop: new Set([...document.keys()].filter((key) => key !== 'clients')),
        owned: new Map([...owned].map(([id, entry]) => [id, String(membersOf(entry).get('since') ?? '')])),
      };
    },
    /** Adds or replaces `entries` in the core configuration. Returns its new revision. */
    async write(entries: readonly ClientEntry[]): Promise<number> {
      // The operation UPDATE merges one level deep: it keeps other clients, and replaces each client in `entries` as a
      // whole.
      const clients = Object.fromEntries(entries.map((entry) => [entry.id, entry]));
      return (await update(clientsName, { clients })).revision;
    },
    async remove(id: string): Promise<void> {
      await configuration.deleteProperty(clientsNamespace, clientsName, `clients.${id}`, core);
    },
    /** Replaces the record of the owned clients. */
    async record(owned: ReadonlyMap<string, string>): Promise<void> {
      const clients = Object.fromEntries([...owned].map(([id, since]) => [id, { since }]));
      await update(recordName, { [owner]: { clients } });
    },
  };
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(isObject(value) ? Object.entries(value) : []);
}
