// Reads all form definitions of a tenant, page by page, from both places of decision 0016.
import type { Configuration, Owner } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { isObject } from '../../service/json-value.ts';

export interface ListedDefinition {
  id: string;
  /** The id if the definition has no name. */
  name: string;
  /** As configured, so possibly not an object. */
  uiSchema: unknown;
}

/**
 * Definitions have up to a megabyte. A page that is too large for one response is read in smaller ones: the client rejects
 * such a page, and the real service responds with 500 beyond 16 MiB.
 */
const largestPage = 32;

/** Includes definitions that are not valid. A definition that is in both places is yielded once, as it is used. */
export async function* listDefinitions(
  configuration: Pick<Configuration, 'read' | 'list'>,
  owner: Owner & { tenantId: string },
): AsyncGenerator<ListedDefinition> {
  const stored = await configuration.read('platform', 'form-service', owner);
  const collection = (stored.active ?? stored.latest)?.configuration;
  const yielded = new Set<string>();
  for (const [id, configured] of isObject(collection) ? Object.entries(collection) : []) {
    yielded.add(id);
    yield toListed(id, configured);
  }
  let top = largestPage;
  for (let after: string | undefined; ; ) {
    try {
      const page = await configuration.list('form-service', { ...owner, top, after, includeActive: true });
      // The real service does not order further pages, so a definition may come twice.
      for (const { name, active, latest } of page.results) {
        if (yielded.has(name)) continue;
        yielded.add(name);
        yield toListed(name, (active ?? latest)?.configuration);
      }
      if (page.next === undefined || page.results.length === 0) return;
      after = page.next;
    } catch (error) {
      if (!isTooLarge(error) || top === 1) throw error;
      top = Math.ceil(top / 4);
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof PlatformError && (error.reason === 'oversized' || error.upstreamStatus === 500);
}

function toListed(id: string, configured: unknown): ListedDefinition {
  const { name, uiSchema } = isObject(configured) ? configured : {};
  return { id, name: typeof name === 'string' ? name : id, uiSchema };
}
