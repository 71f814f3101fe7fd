// The core configuration of the token handler, and the record of which of its clients this reconciler owns. Writes name single
// clients, so that concurrent changes by others are kept. Nothing is validated here.
import type { Configuration } from '../../src/platform/configuration.ts';
import { type ClientEntry, clientsName, clientsNamespace } from '../../src/service/clients/client-rules.ts';

/** The configuration with the record: `{<owner>: {clients: {<id>: {since}}}}`. */
export const recordName = 'token-handler-core-clients';

export interface CoreDocument {
  /** Of the configuration; undefined if there is none yet. */
  revision: number | undefined;
  /** The property `clients`, by id. */
  clients: ReadonlyMap<string, unknown>;
  /** Ids at the top level of the document, where the token handler reads clients too. */
  atTop: ReadonlySet<string>;
  /** Ids of the owned clients, and since when (ISO 8601). */
  owned: ReadonlyMap<string, string>;
}

export interface ClientDocumentOptions {
  configuration: Pick<Configuration, 'read' | 'update' | 'deleteProperty'>;
  /** Two owners never change each other's clients. */
  owner: string;
}

const core = { core: true } as const;

export type ClientDocument = ReturnType<typeof createClientDocument>;

/** Every method throws PlatformError; each write may be repeated. */
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
    /** Adds or replaces these clients. Returns the revision. */
    async write(entries: readonly ClientEntry[]): Promise<number> {
      // An UPDATE merges one level deep: the clients keep their other members, and each of these is replaced whole.
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
  return new Map(typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []);
}
