// Registers in the configuration service, accessed with the service's own account. Each method makes one call, or as few as
// the contract allows; changes.ts decides the order of calls. Only what anonymous callers read is cached.
import type { Configuration } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
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

/** The tenant, and the request on whose behalf a call is made. */
export interface RegisterPlace {
  tenantId: string;
  /** W3C trace context. */
  traceparent?: string | undefined;
  /** Milliseconds for each call; by default the platform client's limit. */
  timeoutMs?: number | undefined;
}

/** Every failure is a Problem: `invalid-request` if the service rejects the request, otherwise `dependency-failed`. */
export type RegisterStore = ReturnType<typeof createRegisterStore>;

/** The document with all definitions of a tenant. */
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
     * For anonymous callers: the entries, if a definition that is at most 5 minutes old permits it; undefined otherwise.
     * Only an open register costs a call of its own.
     */
    readOpen: (name: string, place: RegisterPlace): Promise<readonly unknown[] | undefined> =>
      asked(async () => {
        const { value: document } = await configuration.latest(...home, place, { permission: true });
        const definition = definitionIn(document?.configuration, name);
        if (!definition?.hasArraySchema || !definition.anonymousRead) return undefined;
        const { value } = await configuration.activeOrLatest(registerNamespace, name, place);
        return entriesOf({ latest: value });
      }),
  };
}

function createWrites(configuration: Configuration) {
  // Objects are merged one level deep, so repeating the update changes nothing.
  const updateDefinition = (name: string, definition: Record<string, unknown>, place: RegisterPlace): Promise<void> =>
    asked(async () => {
      await configuration.update(...home, { [definitionKey(name)]: definition }, { ...place, idempotent: true });
    });

  return {
    /** Replaces the latest revision: an update would append the entries. */
    writeEntries: (name: string, entries: readonly unknown[], place: RegisterPlace): Promise<Revision> =>
      asked(() => configuration.replace(registerNamespace, name, entries, place)),

    pin: (name: string, revision: number, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.setActiveRevision(registerNamespace, name, revision, place);
      }),

    /** Requires that there is no definition: the service would merge the two. */
    define: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, newDefinition(description), place),

    /** Keeps the rest of the definition, such as `anonymousRead` and the schema: the service merges. */
    describe: (name: string, description: string, place: RegisterPlace): Promise<void> =>
      updateDefinition(name, { description }, place),

    removeDefinition: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.deleteProperty(...home, definitionKey(name), place);
      }),

    /** Removes the revisions and the pin too. */
    removeEntries: (name: string, place: RegisterPlace): Promise<void> =>
      asked(async () => {
        await configuration.remove(registerNamespace, name, place);
      }),
  };
}

/** Rejections that are the client's fault. Any other 4xx is a fault between the two services. */
const rejections = new Set([400, 409, 413, 422]);

async function asked<T>(calls: () => Promise<T>): Promise<T> {
  try {
    return await calls();
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    if (error.kind === 'rejected' && error.upstreamStatus !== undefined && rejections.has(error.upstreamStatus)) {
      const reason = error.rejection === undefined ? '.' : `: ${error.rejection}`;
      throw new Problem('invalid-request', `The configuration service rejected the request${reason}`, { cause: error });
    }
    // For the client, an open circuit, a timeout and a refused token are the same failure.
    const { headers } = error;
    const detail = 'The configuration service failed or denied access.';
    throw new Problem('dependency-failed', detail, { cause: error, headers });
  }
}
