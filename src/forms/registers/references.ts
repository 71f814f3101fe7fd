// Finds where form definitions refer to registers. Any text in the UI schema that is the URN of a register counts as a
// reference.
import type { Configuration } from '../../platform/configuration.ts';
import { jsonPointer } from '../../service/http/problem.ts';
import { createFairQueue } from '../../service/limits/fair-queue.ts';
import type { Urns } from '../../service/urn.ts';
import { listDefinitions } from '../definitions/list.ts';
import type { CallContext, RegisterStore } from './store.ts';

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
  store: Pick<RegisterStore, 'existing' | 'asked'>;
  urns: Pick<Urns, 'register'>;
}

const maxReferences = 1_000;

export function createRegisterReferences({ configuration, store, urns }: ReferenceOptions) {
  const prefix = urns.register('');
  // A search reads all definitions of a tenant, so each tenant may run only one search at a time.
  const queue = createFairQueue({
    slots: { total: 4, perTenant: 1, perMember: 1 },
    waiting: { total: 40, perTenant: 4, perMember: 4 },
    waitMs: 10_000,
    detail: 'Other searches for references are still running.',
    retryAfterSeconds: 5,
  });

  /** Returns the references to registers whose names `matches` accepts. */
  async function search(context: CallContext, matches: (name: string) => boolean): Promise<References> {
    const release = await queue.take({ tenant: context.tenantId, member: '' });
    try {
      return await store.asked(async () => {
        const results: Reference[] = [];
        for await (const { id, name, uiSchema } of listDefinitions(configuration, context))
          for (const { text, path } of textsIn(uiSchema)) {
            const register = text.slice(prefix.length);
            if (!text.startsWith(prefix) || !matches(register)) continue;
            if (results.length === maxReferences) return { results, truncated: true };
            results.push({
              ...{ definitionId: id, definitionName: name, register, urn: text },
              pointer: jsonPointer(path),
            });
          }
        return { results, truncated: false };
      });
    } finally {
      release();
    }
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

/** Visits all texts in a value. It does not use recursion, because a tenant decides how deeply the value is nested. */
function* textsIn(value: unknown): Generator<{ text: string; path: PropertyKey[] }> {
  const left: { value: unknown; path: PropertyKey[] }[] = [{ value, path: [] }];
  for (let item = left.pop(); item; item = left.pop()) {
    const { path } = item;
    if (typeof item.value === 'string') yield { text: item.value, path };
    else if (typeof item.value === 'object' && item.value !== null)
      for (const [name, member] of Object.entries(item.value)) left.push({ value: member, path: [...path, name] });
  }
}
