// Registers in the configuration service, by our own account. Each method is one call, or as few as the contract
// allows; the order of the calls that make up a change is decided elsewhere. Nothing here is cached but what anonymous
// callers read.
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

/** Of which tenant, and on behalf of which request. */
export interface RegisterPlace {
  tenantId: string;
  /** W3C trace context. */
  traceparent?: string | undefined;
  /** Milliseconds for each call; the platform client's limit without it. */
  timeoutMs?: number | undefined;
}

/** Every failure is a Problem: `invalid-request` where the service rejects, else `dependency-failed`. */
export type RegisterStore = ReturnType<typeof createRegisterStore>;

/** Where a tenant's definitions are, all in one document. */
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
     * For anonymous callers: the definition at most 5 minutes old, and the entries only where it lets anybody read.
     * Undefined for whatever is not open. A name that no definition opens costs no call of its own.
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
  // Objects merge, one level deep, so a repeat changes nothing.
  const updateDefinition = (name: string, definition: Record<string, unknown>, place: RegisterPlace): Promise<void> =>
    asked(async () => {
      await configuration.update(...home, { [definitionKey(name)]: definition }, { ...place, idempotent: true });
    });

  return {
    /** Into the latest revision, as a whole: an update would append. */
    writeEntries: (name: string, entries: readonly unknown[], place: RegisterPlace): Promise<Revision> =>
      asked(() => configuration.replace(registerNamespace, name, entries, place)),

    pin: (name: string, revision: number, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.setActiveRevision(registerNamespace, name, revision, place);
      }),

    /** Assumes that there is no definition: the service would merge the two. */
    define: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, newDefinition(description), place),

    /** The rest of the definition, such as `anonymousRead` and the schema, stays: the service merges. */
    describe: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, { description }, place),

    removeDefinition: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.deleteProperty(...home, definitionKey(name), place);
      }),

    /** With revisions and pin. */
    removeEntries: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.remove(registerNamespace, name, place);
      }),
  };
}
