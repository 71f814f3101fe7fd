// Writes the JSON text of a form definition for its readers, once for each definition.
import { LRUCache } from 'lru-cache';
import { createTokenBuckets } from '../../platform/token-buckets.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { bundledSchema } from './bundled-schema.ts';
import type { FormDefinition } from './definition.ts';

/** Maximum number of bytes of the texts that are kept. */
const keptBytes = 32 * 1_048_576;
/**
 * Bytes of text that may be written for one tenant, and in total. Writing a mebibyte takes up to 100 ms. Only a tenant
 * whose definitions do not fit into the cache together reaches this limit.
 */
const written = {
  share: { perSecond: 1_048_576, burst: keptBytes },
  total: { perSecond: 4 * 1_048_576, burst: 4 * keptBytes },
};

export type DefinitionTexts = (tenantId: string, definition: FormDefinition, isManager: boolean) => Buffer;

/**
 * Returns a function that returns the text of a definition: for managers with all fields and their defaults, for other
 * readers with what they need to show the form. A text is kept until the definition changes: writing a megabyte takes
 * 10 ms or more, and anyone may read a definition that permits applicants without an account. Throws Problem `busy` if
 * too many bytes of the tenant were written.
 */
export function createDefinitionTexts(clock: Clock): DefinitionTexts {
  const budget = createTokenBuckets(clock, written);
  // The definitions of a tenant are the same objects until they change.
  const known = new LRUCache<string, { of: WeakRef<FormDefinition>; text: Buffer }>({
    maxSize: keptBytes,
    sizeCalculation: ({ text }) => text.length,
  });
  return (tenantId, definition, isManager) => {
    const key = `${isManager}\0${tenantId}\0${definition.id}`;
    const before = known.get(key);
    if (before?.of.deref() === definition) return before.text;
    if (budget.left(tenantId) <= 0)
      throw new Problem('busy', 'Too many large form definitions are being read.', { headers: { 'Retry-After': '5' } });
    const text = Buffer.from(JSON.stringify((isManager ? allOf : shownOf)(definition)));
    budget.take(tenantId, text.length, true);
    known.set(key, { of: new WeakRef(definition), text });
    return text;
  };
}

function allOf({ schemaKey: _key, schemaText: _text, configured, ...definition }: FormDefinition): object {
  const { retention } = configured as { retention?: unknown };
  return { ...configured, ...definition, retention, dataSchema: bundledSchema(definition.dataSchema) };
}

function shownOf({ id, name, description, anonymousApply, dataSchema, uiSchema, configured }: FormDefinition): object {
  const { language } = configured as { language?: unknown };
  return {
    id,
    name,
    ...(description && { description }),
    ...(typeof language === 'string' && { language }),
    anonymousApply,
    dataSchema: bundledSchema(dataSchema),
    uiSchema,
  };
}
