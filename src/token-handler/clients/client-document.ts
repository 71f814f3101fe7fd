// The clients of one configuration document. A tenant may write thousands of entries. The class therefore parses an
// entry only when the entry is first needed. While the class parses a whole list, it regularly lets other requests run.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../../service/operations/log.ts';
import type { Client, ClientParser, ParsedClient } from './client.ts';
import type { CatalogMetrics } from './client-metrics.ts';

export interface ClientDocumentOptions {
  place: 'core' | 'tenant';
  tenantId: string | undefined;
  parse: ClientParser;
  log: Logger;
  counts: CatalogMetrics;
}

/** Milliseconds for which `all` parses before it lets other requests run. */
const longestPart = 10;
/** Maximum number of clients of one document for which problems are logged. */
const mostLogged = 20;

export class ClientDocument {
  readonly #entries: ReadonlyMap<string, unknown>;
  readonly #options: ClientDocumentOptions;
  /** The clients of the entries that have been parsed. An invalid entry has the value undefined. */
  readonly #parsed = new Map<string, Client | undefined>();
  #logged = 0;

  constructor(entries: ReadonlyMap<string, unknown>, options: ClientDocumentOptions) {
    this.#entries = entries;
    this.#options = options;
  }

  /** True if there is an entry with this id, even an invalid one. */
  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Returns undefined if there is no entry with this id, or if the entry is invalid. */
  get(id: string): Client | undefined {
    if (this.#parsed.has(id) || !this.#entries.has(id)) return this.#parsed.get(id);
    const parsed = this.#options.parse(id, this.#entries.get(id));
    this.#parsed.set(id, parsed.client);
    this.#report(id, parsed);
    return parsed.client;
  }

  /** Returns the clients of all entries, keyed by id. */
  async all(): Promise<ReadonlyMap<string, Client | undefined>> {
    let began = performance.now();
    for (const id of this.#entries.keys()) {
      this.get(id);
      if (performance.now() - began < longestPart) continue;
      await nextTurn();
      began = performance.now();
    }
    return this.#parsed;
  }

  #report(id: string, { problems, unknownFields, leftOut }: ParsedClient): void {
    const { place, counts } = this.#options;
    if (problems) {
      for (const field of new Set(problems.map((problem) => problem.field)))
        counts.invalidClients.inc({ place, field });
      const reasons = problems.slice(0, 10).map(({ field, detail }) => `${field}: ${detail}`);
      this.#warn(id, { reasons }, 'invalid client left out');
      return;
    }
    const fields = unknownFields.slice(0, 10).map((field) => field.slice(0, 50));
    if (fields.length > 0) this.#warn(id, { fields }, 'client has unknown fields, which are ignored');
    counts.invalidRedirectUris.inc({ place }, leftOut.length);
    if (leftOut.length > 0) this.#warn(id, { reasons: leftOut.slice(0, 10) }, 'invalid redirect URIs left out');
  }

  #warn(id: string, details: object, message: string): void {
    const { place, tenantId: tenant, log } = this.#options;
    this.#logged += 1;
    if (this.#logged <= mostLogged) log.warn({ client: id.slice(0, 50), place, tenant, ...details }, message);
    else if (this.#logged === mostLogged + 1)
      log.warn(
        { place, tenant, logged: mostLogged },
        'further clients of the document have problems, which are not logged',
      );
  }
}
