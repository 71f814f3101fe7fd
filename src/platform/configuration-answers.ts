// Schemas of the configuration service's responses: revisions, entries and pages of them.
import { z } from 'zod';

/** One revision of a configuration. */
export interface Revision {
  revision: number;
  /** ISO 8601 */
  created?: string | undefined;
  /** ISO 8601 */
  lastUpdated?: string | undefined;
  configuration: unknown;
}

/** A configuration as lists show it. */
export interface ConfigurationEntry {
  namespace: string;
  name: string;
  latest: Revision | undefined;
  /** The pinned revision; in lists only with `includeActive`. */
  active: Revision | undefined;
}

export interface Page<T> {
  results: T[];
  /** Cursor of the next page. The last page can be empty: a full page always has a cursor. */
  next: string | undefined;
}

const absent = <T>(value: T | null | undefined): T | undefined => value ?? undefined;
const timestamp = z.string().nullish().transform(absent);

const revisionSchema = z
  .looseObject({
    revision: z.int().nonnegative(),
    created: timestamp,
    lastUpdated: timestamp,
    configuration: z.unknown(),
  })
  .transform(({ revision, created, lastUpdated, configuration }): Revision => {
    return { revision, created, lastUpdated, configuration };
  });

/** A revision; undefined for null, an empty body or `{}`, by which the service says that there is none. */
export const someRevision = z
  .union([revisionSchema, z.strictObject({}).transform(() => undefined)])
  .nullish()
  .transform(absent);

export const latestAnswer = z.looseObject({ latest: revisionSchema }).transform(({ latest }) => latest);

export const bothAnswer = z
  .looseObject({ latest: someRevision, active: someRevision })
  .transform(({ latest, active }) => ({ latest, active }));

const entry = z
  .looseObject({ namespace: z.string(), name: z.string(), latest: someRevision, active: someRevision })
  .transform(({ namespace, name, latest, active }): ConfigurationEntry => ({ namespace, name, latest, active }));

export const entryPage = z
  .looseObject({ results: z.array(entry), page: z.looseObject({ next: z.string().nullish() }) })
  .transform(({ results, page: { next } }): Page<ConfigurationEntry> => ({ results, next: next || undefined }));

export const activeAnswer = z.looseObject({ active: z.int().nonnegative() }).transform(({ active }) => active);
export const deletedAnswer = z.looseObject({ deleted: z.boolean() }).transform(({ deleted }) => deleted);
