// Reads and writes registers in the configuration service, with the service's own account. Each method makes as few calls
// as the contract allows; changes.ts decides their order. Only reads for anonymous callers are cached.
import type { Configuration } from '../../platform/configuration.ts';
import { asked } from './failure.ts';
import { createRegisterList, type ListOptions } from './list-store.ts';
import {
  definitionIn,
  definitionKey,
  entriesOf,
  newDefinition,
  type Parts,
  type Revision,
  registerNamespace,
} from './register.ts';
import type { RegisterPage } from './register-page.ts';

/** The tenant and the request of a call. */
export interface RegisterPlace {
  tenantId: string;
  /** W3C trace context. */
  traceparent?: string | undefined;
  /** Milliseconds for each call; default: the platform client's limit. */
  timeoutMs?: number | undefined;
}

/** Every failure is a Problem: `invalid-request` if the service rejects the call, else `dependency-failed`. */
export type RegisterStore = ReturnType<typeof createRegisterStore>;

/** The document of all definitions of a tenant. */
const home = ['platform', 'configuration-service'] as const;

export function createRegisterStore(configuration: Configuration) {
  return { ...createReads(configuration), ...createWrites(configuration) };
}

function createReads(configuration: Configuration) {
  async function readDefinitions(place: RegisterPlace): Promise<unknown> {
    const { latest } = await configuration.read(...home, place);
    return latest?.configuration;
  }

  const list = createRegisterList(configuration, readDefinitions);

  return {
    read: (name: string, place: RegisterPlace): Promise<Parts> =>
      asked(async () => {
        const reads = [readDefinitions(place), configuration.read(registerNamespace, name, place)] as const;
        const [document, revisions] = await Promise.all(reads);
        return { definition: definitionIn(document, name), ...revisions };
      }),

    list: (place: RegisterPlace, options: ListOptions): Promise<RegisterPage> => asked(() => list(place, options)),

    /**
     * For anonymous callers. Undefined unless the definition, which is at most 5 minutes old, lets anyone read. A register
     * that is not open costs no call of its own.
     */
    readOpen: (name: string, place: RegisterPlace): Promise<readonly unknown[] | undefined> =>
      asked(async () => {
        const document = await configuration.latest(...home, place, { permission: true });
        const definition = definitionIn(document?.configuration, name);
        if (!definition?.hasArraySchema || !definition.anonymousRead) return undefined;
        return entriesOf({ latest: await configuration.activeOrLatest(registerNamespace, name, place) });
      }),
  };
}

function createWrites(configuration: Configuration) {
  // Objects merge one level deep, so a retry changes nothing.
  const updateDefinition = (name: string, definition: Record<string, unknown>, place: RegisterPlace): Promise<void> =>
    asked(async () => {
      await configuration.update(...home, { [definitionKey(name)]: definition }, { ...place, idempotent: true });
    });

  return {
    /** Replaces the entries of the latest revision: an update would append. */
    writeEntries: (name: string, entries: readonly unknown[], place: RegisterPlace): Promise<Revision> =>
      asked(() => configuration.replace(registerNamespace, name, entries, place)),

    pin: (name: string, revision: number, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.setActiveRevision(registerNamespace, name, revision, place);
      }),

    /** For a register without a definition: the service would merge the two. */
    define: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, newDefinition(description), place),

    /** Keeps the rest of the definition, such as `anonymousRead` and the schema: the service merges. */
    describe: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, { description }, place),

    removeDefinition: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.deleteProperty(...home, definitionKey(name), place);
      }),

    /** With all revisions and the pin. */
    removeEntries: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.remove(registerNamespace, name, place);
      }),
  };
}
