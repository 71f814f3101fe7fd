// Reads and writes registers in the configuration service, with the form service's own account. Each method makes as
// few calls as the contract allows. changes.ts determines the order of the calls. Only `readOpen` uses a cache.
import type { Response } from 'express';
import type { Configuration } from '../../platform/configuration.ts';
import { isRejection, PlatformError } from '../../platform/platform-error.ts';
import { forEachConcurrent } from '../../service/for-each-concurrent.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { withinTotal } from '../../service/time-limit.ts';
import { createRegisterList, type ListOptions } from './list-store.ts';
import {
  definitionIn,
  definitionKey,
  definitionsIn,
  entriesOf,
  newDefinition,
  type Parts,
  type Revision,
  registerNamespace,
} from './register.ts';
import type { RegisterPage } from './register-page.ts';

/** The tenant of a call, and the maximum time for it. */
export interface CallContext {
  tenantId: string;
  /** Time limit for each call in milliseconds. The default is the platform client's timeout. */
  timeoutMs?: number | undefined;
}

/** Returns the context for the calls of a request: the request's tenant, and the default timeout. */
export function callContextOf(response: Response): CallContext {
  return { tenantId: tenantOf(response).id };
}

/**
 * Each method throws every failure as a Problem: `invalid-request` if the configuration service rejects the call,
 * `busy` if the tenant's documents are too large to be read this often, otherwise `dependency-failed`.
 */
export type RegisterStore = ReturnType<typeof createRegisterStore>;

const concurrentReads = 8;
/** The namespace and name of the configuration that contains all definitions of a tenant. */
const home = ['platform', 'configuration-service'] as const;

/** Maximum time in milliseconds for a request that reads many registers, as long as for a change. */
const requestMs = 45_000;

export function createRegisterStore(configuration: Configuration, { longestRead = requestMs } = {}) {
  return { ...createReads(configuration, longestRead), ...createWrites(configuration) };
}

function createReads(configuration: Configuration, longestRead: number) {
  const timeLimit = () =>
    withinTotal(longestRead, () => new Problem('dependency-failed', 'The configuration service took too long.'));

  async function readDefinitions(context: CallContext): Promise<unknown> {
    const { latest } = await configuration.read(...home, context);
    return latest?.configuration;
  }

  const list = createRegisterList(configuration, readDefinitions);

  return {
    read: (name: string, context: CallContext): Promise<Parts> =>
      askConfiguration(async () => {
        const reads = [readDefinitions(context), configuration.read(registerNamespace, name, context)] as const;
        const [document, revisions] = await Promise.all(reads);
        return { definition: definitionIn(document, name), ...revisions };
      }),

    list: (context: CallContext, options: ListOptions): Promise<RegisterPage> =>
      askConfiguration(() => list(context, options, timeLimit())),

    /** Returns the given names whose registers have both parts: a definition and entries. */
    existing: (names: Iterable<string>, context: CallContext): Promise<Set<string>> =>
      askConfiguration(async () => {
        const wait = timeLimit();
        const defined = definitionsIn(await wait(readDefinitions(context)));
        const found = new Set<string>();
        const candidates = [...new Set(names)].filter((name) => defined.has(name));
        await forEachConcurrent(candidates, concurrentReads, async (name) => {
          if (entriesOf(await wait(configuration.read(registerNamespace, name, context)))) found.add(name);
        });
        return found;
      }),

    revisions: (name: string, context: CallContext, page: { top: number; after?: string | undefined }) =>
      askConfiguration(() => configuration.revisions(registerNamespace, name, { ...context, ...page })),

    /** Returns the entries of a revision. Undefined if the revision does not exist or is not a list. */
    revision: (name: string, revision: number, context: CallContext): Promise<readonly unknown[] | undefined> =>
      askConfiguration(async () => {
        const content = await configuration.revision(registerNamespace, name, revision, context);
        return Array.isArray(content) ? content : undefined;
      }),

    /**
     * Reads the entries for a caller without a role. Returns undefined if the definition does not allow anonymous
     * reads. The definition is at most 5 minutes old. Does not read the entries of a closed register.
     */
    readOpen: (name: string, context: CallContext): Promise<readonly unknown[] | undefined> =>
      askConfiguration(async () => {
        const document = await configuration.latest(...home, context, { permission: true });
        const definition = definitionIn(document?.configuration, name);
        if (!definition?.hasArraySchema || !definition.anonymousRead) return undefined;
        return entriesOf({ latest: await configuration.activeOrLatest(registerNamespace, name, context) });
      }),
  };
}

function createWrites(configuration: Configuration) {
  // The call is idempotent, because the service merges objects by their members, one level deep.
  const updateDefinition = (name: string, definition: Record<string, unknown>, context: CallContext) =>
    askConfiguration(() =>
      configuration.update(...home, { [definitionKey(name)]: definition }, { ...context, idempotent: true }),
    );

  return {
    /** Replaces the entries of the latest revision. The operation UPDATE would append them. */
    writeEntries: (name: string, entries: readonly unknown[], context: CallContext): Promise<Revision> =>
      askConfiguration(() => configuration.replace(registerNamespace, name, entries, context)),

    /** Copies the latest revision. Later changes go to the copy. */
    createRevision: (name: string, context: CallContext): Promise<Revision> =>
      askConfiguration(() => configuration.createRevision(registerNamespace, name, context)),

    pin: (name: string, revision: number, context: CallContext) =>
      askConfiguration(() => configuration.setActiveRevision(registerNamespace, name, revision, context)),

    /**
     * Writes the definition of a register that has no definition. If a definition existed, the configuration service
     * would merge the new one into it.
     */
    define: (name: string, description: string, context: CallContext) =>
      updateDefinition(name, newDefinition(description), context),

    /**
     * Changes only the description. The configuration service merges the change, so the definition keeps
     * `anonymousRead` and the schema.
     */
    describe: (name: string, description: string, context: CallContext) =>
      updateDefinition(name, { description }, context),

    removeDefinition: (name: string, context: CallContext) =>
      askConfiguration(() => configuration.deleteProperty(...home, definitionKey(name), context)),

    /** Removes the entries with all revisions and the pin. */
    removeEntries: (name: string, context: CallContext) =>
      askConfiguration(() => configuration.remove(registerNamespace, name, context)),
  };
}

/**
 * Statuses with which the configuration service says that the client's request is invalid. Any other 4xx is not the
 * client's fault, so the response to the client is 502.
 */
const rejections = [400, 409, 413, 422];

/** Runs calls to the configuration service, and converts their failures into the Problems of this API. */
export async function askConfiguration<T>(calls: () => Promise<T>): Promise<T> {
  try {
    return await calls();
  } catch (error) {
    if (!(error instanceof PlatformError) || error.kind === 'over-budget') throw error;
    if (isRejection(error, 'configuration', rejections)) {
      const reason = error.rejection === undefined ? '.' : `: ${error.rejection}`;
      throw new Problem('invalid-request', `The configuration service rejected the request${reason}`, { cause: error });
    }
    // An open circuit, a timeout and a rejected token get the same Problem, because the difference does not matter to
    // the client.
    const detail = 'The configuration service failed or denied access.';
    throw new Problem('dependency-failed', detail, { cause: error, headers: error.headers });
  }
}
