// Keeps the core clients right: what the CoreClient resources say, and builder-preview, stands in the core configuration
// of the token handler. It touches no client that it does not own, and a run that lost its turn writes nothing more.
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../src/platform/configuration.ts';
import { PlatformError } from '../../src/platform/platform-error.ts';
import { builderPreview, builderPreviewId } from '../../src/service/client-rules.ts';
import type { Clock } from '../../src/service/clock.ts';
import type { Logger } from '../../src/service/log.ts';
import type { Urns } from '../../src/service/urn.ts';
import { createClientDocument } from './document.ts';

/** What one sync did, or with `dryRun` would do. */
export interface ClientsOutcome {
  /** How many clients, by what became of them. */
  counts: Record<string, number>;
  /** How many resources have a condition now: `Ready=True` → n. */
  conditions: Record<string, number>;
  /** What failed of the infrastructure, one short line each, fit for a log: such a run has failed. */
  failures: string[];
  /** Why resources were not looked at. */
  skipped?: string;
}

export interface SyncOptions {
  /** Finds out and logs what would change, and writes nothing. */
  dryRun: boolean;
  /** Lets more than half of the owned clients, or all of them, be removed at once. */
  allowPrune: boolean;
  /** Asked before every write. Rejects when the run has lost its turn; then so does the sync, at once. */
  assertTurn(): Promise<void>;
}

export interface ClientSync {
  /** Rejects only with what `assertTurn` rejects with. */
  sync(options: SyncOptions): Promise<ClientsOutcome>;
}

export interface ClientSyncOptions {
  configuration: Pick<Configuration, 'read' | 'update' | 'deleteProperty'>;
  urns: Pick<Urns, 'prefix' | 'service'>;
  /** Public URL of the builder without trailing slash; undefined where there is none. */
  builderUrl: string | undefined;
  allowInsecureRedirectUris: boolean;
  /** Whose clients these are in the record of the core configuration: unique among what shares a platform. */
  owner: string;
  clock: Clock;
  log: Logger;
}

export function createClientSync(options: ClientSyncOptions): ClientSync {
  const { urns, builderUrl, log } = options;
  const document = createClientDocument(options);
  return {
    async sync({ dryRun, assertTurn }) {
      const outcome: ClientsOutcome = { counts: {}, conditions: {}, failures: [], skipped: 'there is no Kubernetes' };
      if (builderUrl === undefined) return outcome;
      const after = builderPreview(builderUrl, urns);
      try {
        const before = (await document.read()).clients.get(builderPreviewId);
        if (isDeepStrictEqual(before, after)) return outcome;
        outcome.counts.builderPreview = 1;
        log.info({ client: builderPreviewId, dryRun, before: before ?? null, after }, 'builder-preview is put right');
        if (dryRun) return outcome;
        await assertTurn();
        await document.write([after]);
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        outcome.failures.push(error.message);
      }
      return outcome;
    },
  };
}
