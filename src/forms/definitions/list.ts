// Reads all form definitions of a tenant, page by page. Tenants configure definitions in a single document (the
// collection), in a separate document for each definition, or in both (decision 0016).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Configuration, Owner } from '../../platform/configuration.ts';
import { oversized, PlatformError } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import { createSearchQueue } from '../../service/limits/search-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createCursorCheck } from '../../service/page-cursors.ts';
import { createShortCache } from '../../service/short-cache.ts';
import { withinTotal } from '../../service/time-limit.ts';

export interface ListedDefinition {
  id: string;
  /** The definition's name, or its id if it has no name. */
  name: string;
  /** Where the definition is configured: in the tenant's `platform:form-service`, or in a separate configuration. */
  source: 'collection' | 'document';
  anonymousApply: boolean;
  /** The UI schema as configured. Its type is not checked. */
  uiSchema: unknown;
}

/**
 * Number of definitions on a page. A definition may be as large as a megabyte. If a page is too large for one response,
 * smaller pages are read. There are two signs of such a page: the HTTP client rejects the response as too large, or the
 * public platform's service responds with 500, as it does beyond 16 MiB.
 */
const largestPage = 32;
/**
 * The pause after a page is the duration of its read times this number, at most a second. The main thread parses the
 * pages, and a tenant may have hundreds of megabytes of definitions.
 */
const restFactor = 2;
const longestRest = 1_000;
/**
 * Maximum time in milliseconds for a list, rests included. A list takes one of four places for all tenants, so a slow
 * service must not hold it for longer. Tenants with 300 MB of definitions need about this time.
 */
const longestList = 45_000;

/**
 * Yields all definitions, including invalid ones. If a definition is both in the collection and in its own document,
 * yields only the one that the form service uses. Throws PlatformError, or Problem `dependency-failed` if the list of
 * the configuration service does not end, or takes longer than `longest` milliseconds.
 */
export async function* listDefinitions(
  configuration: Pick<Configuration, 'read' | 'list'>,
  owner: Owner & { tenantId: string },
  longest = longestList,
): AsyncGenerator<ListedDefinition> {
  const wait = withinTotal(
    longest,
    () => new Problem('dependency-failed', 'The configuration service took too long to list the form definitions.'),
  );
  const stored = await wait(configuration.read('platform', 'form-service', owner));
  const collection = (stored.active ?? stored.latest)?.configuration;
  const yielded = new Set<string>();
  for (const [id, configured] of isObject(collection) ? Object.entries(collection) : []) {
    yielded.add(id);
    yield toListed(id, configured, 'collection');
  }
  const faultOf = createCursorCheck();
  let top = largestPage;
  for (let after: string | undefined; ; ) {
    const began = performance.now();
    try {
      const page = await wait(configuration.list('form-service', { ...owner, top, after, includeActive: true }));
      const rest = Math.min((performance.now() - began) * restFactor, longestRest);
      // The public platform's service sorts only the first page, so a definition may appear twice.
      for (const { name, active, latest } of page.results) {
        if (yielded.has(name)) continue;
        yielded.add(name);
        yield toListed(name, (active ?? latest)?.configuration, 'document');
      }
      if (page.next === undefined || page.results.length === 0) return;
      const fault = faultOf(page.next);
      if (fault !== undefined) throw endless(fault);
      after = page.next;
      await sleep(rest);
    } catch (error) {
      if (!isTooLarge(error) || top === 1) throw error;
      top = Math.ceil(top / 4);
    }
  }
}

function endless(fault: string): Problem {
  return new Problem('dependency-failed', `The configuration service returned a list that does not end: ${fault}.`);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof PlatformError && (error.reason === oversized || error.upstreamStatus === 500);
}

function toListed(id: string, configured: unknown, source: ListedDefinition['source']): ListedDefinition {
  const { name, uiSchema, anonymousApply } = isObject(configured) ? configured : {};
  return { id, name: typeof name === 'string' ? name : id, source, anonymousApply: anonymousApply === true, uiSchema };
}

export interface DefinitionSummaries {
  /** At most a thousand definitions, sorted by name. */
  results: Omit<ListedDefinition, 'uiSchema'>[];
  truncated: boolean;
}

export type DefinitionList = (tenantId: string) => Promise<DefinitionSummaries>;

const mostListed = 1_000;
/** Names are cut off after this many characters, because the configuration service does not limit their length. */
const longestName = 200;

/**
 * Returns a function that lists at most a thousand definitions. Calls for the same tenant within ten seconds, or while
 * the list is being read, share one list.
 */
export function createDefinitionList(options: {
  configuration: Pick<Configuration, 'read' | 'list'>;
  clock: Clock;
  metrics: Pick<Metrics, 'queueRefusals'>;
}): DefinitionList {
  const { configuration, clock, metrics } = options;
  // The queue limits how many lists are built concurrently, because a list requires all definitions of a tenant, which
  // may be many megabytes.
  const detail = 'Other requests are still reading the definitions.';
  const queue = createSearchQueue({ name: 'definitions', detail, metrics });
  async function read(tenantId: string): Promise<DefinitionSummaries> {
    const results: DefinitionSummaries['results'] = [];
    for await (const { uiSchema: _unused, ...summary } of listDefinitions(configuration, { tenantId })) {
      if (results.length === mostListed) return { results: sorted(results), truncated: true };
      results.push({ ...summary, name: summary.name.slice(0, longestName) });
    }
    return { results: sorted(results), truncated: false };
  }
  return createShortCache({
    freshFor: 10_000,
    // A list takes up to 300 KB of memory.
    most: 50,
    clock,
    read: (tenantId) => queue.run({ tenant: tenantId, member: '' }, () => read(tenantId)),
  });
}

const sorted = (results: DefinitionSummaries['results']) =>
  results.sort((a, b) => a.name.localeCompare(b.name, 'en') || (a.id < b.id ? -1 : 1));
