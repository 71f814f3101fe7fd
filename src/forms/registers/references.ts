// Finds where form definitions refer to registers. Any text in the UI schema that is the URN of a register counts as a
// reference.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Configuration } from '../../platform/configuration.ts';
import { jsonPointer } from '../../service/http/problem.ts';
import { createSearchQueue } from '../../service/limits/search-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import { listDefinitions } from '../definitions/list.ts';
import { askConfiguration, type CallContext, type RegisterStore } from './store.ts';

export interface Reference {
  definitionId: string;
  definitionName: string;
  /** The register's name in the URN. It is possible that no such register exists. */
  register: string;
  urn: string;
  /** JSON pointer into the UI schema. */
  pointer: string;
}

export interface References {
  results: Reference[];
  truncated: boolean;
}

export type RegisterReferences = ReturnType<typeof createRegisterReferences>;

export interface ReferenceOptions {
  configuration: Pick<Configuration, 'read' | 'list'>;
  store: Pick<RegisterStore, 'existing'>;
  urns: Pick<Urns, 'register'>;
  metrics: Pick<Metrics, 'queueRefusals'>;
}

const maxReferences = 1_000;
/**
 * Maximum length of all references, in characters. Pointers repeat the names of the members that contain a URN, so
 * without this limit the references of a UI schema with one long member name could be a thousand times its size.
 */
const maxCharacters = 1_048_576;
/** Number of members that are visited before the event loop may handle other work. A step takes about a millisecond. */
const stepMembers = 5_000;

export function createRegisterReferences({ configuration, store, urns, metrics }: ReferenceOptions) {
  const prefix = urns.register('');
  // A search reads all definitions of a tenant, so each tenant may run only one search at a time.
  const detail = 'Other searches for references are still running.';
  const queue = createSearchQueue({ name: 'register-references', detail, metrics });

  /** Returns the references to registers whose names `matches` accepts. */
  async function search(context: CallContext, matches: (name: string) => boolean): Promise<References> {
    return queue.run({ tenant: context.tenantId, member: '' }, () =>
      askConfiguration(async () => {
        const results: Reference[] = [];
        let characters = 0;
        const isReference = (text: string) => text.startsWith(prefix) && matches(text.slice(prefix.length));
        for await (const { id, name, uiSchema } of listDefinitions(configuration, context))
          for await (const { text, path } of textsIn(uiSchema, isReference)) {
            if (results.length === maxReferences || characters > maxCharacters) return { results, truncated: true };
            const pointer = jsonPointer(path);
            const register = text.slice(prefix.length);
            characters += name.length + text.length + register.length + pointer.length;
            results.push({ definitionId: id, definitionName: name, register, urn: text, pointer });
          }
        return { results, truncated: false };
      }),
    );
  }

  return {
    /** Returns the references to a register, whether the register exists or not. */
    to: (name: string, context: CallContext) => search(context, (register) => register === name),

    /** Returns the references to registers that do not exist or whose list of entries is missing. */
    async dead(context: CallContext): Promise<References> {
      const { results, truncated } = await search(context, () => true);
      const existing = await store.existing(
        results.map(({ register }) => register),
        context,
      );
      return { results: results.filter(({ register }) => !existing.has(register)), truncated };
    },
  };
}

/** An array or object that contains the current member. */
interface Visited {
  members: Record<PropertyKey, unknown>;
  /** Undefined for an array. */
  names: string[] | undefined;
  count: number;
  /** Index of the next member. */
  next: number;
}

/**
 * Yields the texts in a value that `matches` accepts, with their paths. Between steps, the event loop handles other
 * work. A tenant decides how large and how deeply nested the value is. The function therefore avoids recursion, stores
 * only the containers of the current member, and builds a path only for a match.
 */
async function* textsIn(
  value: unknown,
  matches: (text: string) => boolean,
): AsyncGenerator<{ text: string; path: PropertyKey[] }> {
  const containers = [visit([value])];
  for (let steps = 1; ; steps += 1) {
    if (steps % stepMembers === 0) await nextTurn();
    const current = containers.at(-1);
    if (!current) return;
    if (current.next === current.count) {
      containers.pop();
      continue;
    }
    current.next += 1;
    const member = current.members[currentKey(current)];
    if (typeof member === 'object' && member !== null) containers.push(visit(member));
    else if (typeof member === 'string' && matches(member))
      yield { text: member, path: containers.slice(1).map(currentKey) };
  }
}

function visit(container: object): Visited {
  const names = Array.isArray(container) ? undefined : Object.keys(container);
  const count = Array.isArray(container) ? container.length : (names?.length ?? 0);
  return { members: container as Visited['members'], names, count, next: 0 };
}

function currentKey({ names, next }: Visited): PropertyKey {
  return names?.[next - 1] ?? next - 1;
}
