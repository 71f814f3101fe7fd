// Schemas of the configuration service's responses: revisions, entries, and pages of entries.
import { z } from 'zod';

/** One revision of a configuration. */
export interface Revision {
  revision: number;
  /** The time of creation (ISO 8601). */
  created?: string | undefined;
  /** The time of the last update (ISO 8601). */
  lastUpdated?: string | undefined;
  configuration: unknown;
}

/** A configuration as it appears in lists. */
export interface ConfigurationEntry {
  namespace: string;
  name: string;
  latest: Revision | undefined;
  /** The pinned revision. Lists contain it only if the request has `includeActive`. */
  active: Revision | undefined;
}

export interface Page<T> {
  results: T[];
  /** Cursor for the next page. A full page always has a cursor, so the next page may be empty. */
  next: string | undefined;
}

const absent = <T>(value: T | null | undefined): T | undefined => value ?? undefined;
const timestamp = z.string().nullish().transform(absent);

const revisionSchema = z.object({
  revision: z.int().nonnegative(),
  created: timestamp,
  lastUpdated: timestamp,
  configuration: z.unknown(),
});

/** Parses a revision. Returns undefined for null, an empty body or `{}`, because each means that no revision exists. */
export const someRevision = z
  .union([revisionSchema, z.strictObject({}).transform(() => undefined)])
  .nullish()
  .transform(absent);

export const latestResponse = z.object({ latest: revisionSchema }).transform(({ latest }) => latest);

export const bothResponse = z.object({ latest: someRevision, active: someRevision });

const entry = z.object({ namespace: z.string(), name: z.string(), latest: someRevision, active: someRevision });

export const entryPage = z
  .object({ results: z.array(entry), page: z.object({ next: z.string().nullish() }) })
  .transform(({ results, page: { next } }): Page<ConfigurationEntry> => ({ results, next: next || undefined }));

export const revisionPage = z
  .object({ results: z.array(revisionSchema), page: z.object({ next: z.string().nullish() }) })
  .transform(({ results, page: { next } }): Page<Revision> => ({ results, next: next || undefined }));

export const activeResponse = z.object({ active: z.int().nonnegative() }).transform(({ active }) => active);
export const deletedResponse = z.object({ deleted: z.boolean() }).transform(({ deleted }) => deleted);
