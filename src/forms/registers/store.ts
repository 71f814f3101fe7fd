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

/** The tenant of a call, the trace of its request, and its time limit. */
export interface CallContext {
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
  async function readDefinitions(context: CallContext): Promise<unknown> {
    const { latest } = await configuration.read(...home, context);
    return latest?.configuration;
  }

  const list = createRegisterList(configuration, readDefinitions);

  return {
    read: (name: string, context: CallContext): Promise<Parts> =>
      asked(async () => {
        const reads = [readDefinitions(context), configuration.read(registerNamespace, name, context)] as const;
        const [document, revisions] = await Promise.all(reads);
        return { definition: definitionIn(document, name), ...revisions };
      }),

    list: (context: CallContext, options: ListOptions): Promise<RegisterPage> => asked(() => list(context, options)),

    /**
     * For anonymous callers: the definition at most 5 minutes old, and the entries only where it lets anybody read.
     * Undefined for whatever is not open. A name that no definition opens costs no call of its own.
     */
    readOpen: (name: string, context: CallContext): Promise<readonly unknown[] | undefined> =>
      asked(async () => {
        const { value: document } = await configuration.latest(...home, context, { permission: true });
        const definition = definitionIn(document?.configuration, name);
        if (!definition?.hasArraySchema || !definition.anonymousRead) return undefined;
        const { value } = await configuration.activeOrLatest(registerNamespace, name, context);
        return entriesOf({ latest: value });
      }),
  };
}

function createWrites(configuration: Configuration) {
  // Objects merge, one level deep, so a repeat changes nothing.
  const updateDefinition = (name: string, definition: Record<string, unknown>, context: CallContext): Promise<void> =>
    asked(async () => {
      await configuration.update(...home, { [definitionKey(name)]: definition }, { ...context, idempotent: true });
    });

  return {
    /** Into the latest revision, as a whole: an update would append. */
    writeEntries: (name: string, entries: readonly unknown[], context: CallContext): Promise<Revision> =>
      asked(() => configuration.replace(registerNamespace, name, entries, context)),

    pin: (name: string, revision: number, context: CallContext): Promise<void> =>
      asked(async () => {
        await configuration.setActiveRevision(registerNamespace, name, revision, context);
      }),

    /** Assumes that there is no definition: the service would merge the two. */
    define: (name: string, description: string, context: CallContext): Promise<void> =>
      updateDefinition(name, newDefinition(description), context),

    /** The rest of the definition, such as `anonymousRead` and the schema, stays: the service merges. */
    describe: (name: string, description: string, context: CallContext): Promise<void> =>
      updateDefinition(name, { description }, context),

    removeDefinition: (name: string, context: CallContext): Promise<void> =>
      asked(async () => {
        await configuration.deleteProperty(...home, definitionKey(name), context);
      }),

    /** With revisions and pin. */
    removeEntries: (name: string, context: CallContext): Promise<void> =>
      asked(async () => {
        await configuration.remove(registerNamespace, name, context);
      }),
  };
}
