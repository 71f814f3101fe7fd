// Calls of the configuration service that only tests need: revisions, and the pages of a namespace.
import { z } from 'zod';
import type { Owner } from '../../src/platform/configuration.ts';
import {
  type ConfigurationEntry,
  entryPage,
  latestResponse,
  type Revision,
} from '../../src/platform/configuration-responses.ts';
import type { PlatformClient } from '../../src/platform/http-client.ts';
import { pathOf } from '../../src/platform/url-path.ts';

export interface Revisions {
  /** Copies the latest revision of a configuration to a new revision. */
  create(namespace: string, name: string, place: Owner): Promise<Revision>;
  /** Returns the configuration of one revision; undefined if the revision does not exist. */
  read(namespace: string, name: string, revision: number, place: Owner): Promise<unknown>;
  /** Returns at most 100 revisions of a configuration, newest first. */
  list(namespace: string, name: string, place: Owner): Promise<Revision[]>;
  /** Returns every configuration of a namespace with its active revision, in pages of two. */
  entries(namespace: string, place: Owner): Promise<ConfigurationEntry[]>;
}

const revisionList = z.looseObject({
  results: z.array(z.looseObject({ revision: z.int(), configuration: z.unknown() })),
});

export function revisionsOf(client: Pick<PlatformClient, 'request'>): Revisions {
  const path = (...segments: string[]) => pathOf('configuration', 'configuration', ...segments);
  return {
    create: (namespace, name, { tenantId }) =>
      client.request({
        operation: 'create configuration revision',
        method: 'POST',
        path: path(namespace, name),
        query: { tenantId },
        body: { operation: 'CREATE-REVISION' },
        response: latestResponse,
      }),
    read: (namespace, name, revision, { tenantId }) =>
      client.request({
        operation: 'read configuration revision',
        method: 'GET',
        path: path(namespace, name, 'revisions', String(revision)),
        query: { tenantId },
        response: z.unknown(),
        notFound: () => undefined,
      }),
    list: async (namespace, name, { tenantId }) => {
      const { results } = await client.request({
        operation: 'list configuration revisions',
        method: 'GET',
        path: path(namespace, name, 'revisions'),
        query: { tenantId, top: 100 },
        response: revisionList,
      });
      return results;
    },
    entries: async (namespace, { tenantId }) => {
      const found: ConfigurationEntry[] = [];
      for (let after: string | undefined; ; ) {
        const { results, next } = await client.request({
          operation: 'list configuration',
          method: 'GET',
          path: path(namespace),
          query: { tenantId, top: 2, includeActive: true, after },
          response: entryPage,
        });
        found.push(...results);
        if (next === undefined) return found;
        after = next;
      }
    },
  };
}
