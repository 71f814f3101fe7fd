// Writes the core clients that the CoreClient resources describe, and builder-preview, to the core configuration of the
// token handler. Changes no client that it does not own. A run that lost its lease writes nothing more.
import type { Configuration } from '../../src/platform/configuration.ts';
import { PlatformError } from '../../src/platform/platform-error.ts';
import { builderPreview, type ClientEntry } from '../../src/service/clients/client-rules.ts';
import type { Clock } from '../../src/service/clock.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import type { Urns } from '../../src/service/urn.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-calls.ts';
import { type ClientDocument, type CoreDocument, createClientDocument } from './document.ts';
import { type Plan, planReserved, planSync, type Verdict } from './plan.ts';
import type { Refusals } from './refusals.ts';
import { countConditions, makeReports, sendReports } from './report.ts';
import type { CoreClientResource } from './resource.ts';
import type { SyncResult } from './status.ts';
import { type Written, writePlan } from './writes.ts';

/** The result of one sync; with `dryRun`, what it would be. */
export interface ClientsOutcome {
  /** Number of clients by outcome. */
  counts: Record<string, number>;
  /** Number of resources by condition, such as `Ready=True`. */
  conditions: Record<string, number>;
  /** Failures of the infrastructure, one short line each, for the log. A run with any has failed. */
  failures: string[];
  /** Number of clients and statuses that were quarantined; absent if none. */
  quarantined?: number;
  /** Why resources were not read. */
  skipped?: string;
}

export interface SyncOptions {
  /** Logs what would change, and writes nothing. */
  dryRun: boolean;
  /** Allows one sync to remove more than half of the owned clients. */
  allowPrune: boolean;
  /** Called before every write. If it rejects, because the run has lost its lease, the sync rejects too. */
  renewLease(): Promise<void>;
  /** Aborted to end the sync early: the next one writes the missing statuses. */
  signal?: AbortSignal | undefined;
}

export interface ClientSync {
  /** Rejects only if `renewLease` does, with the same reason. */
  sync(options: SyncOptions): Promise<ClientsOutcome>;
}

export interface ClientSyncOptions {
  configuration: Pick<Configuration, 'read' | 'update' | 'deleteProperty'>;
  /** Called at each sync, which closes the result; undefined if no resources are to be read. */
  findCluster: (() => Promise<Cluster | undefined>) | undefined;
  urns: Pick<Urns, 'prefix' | 'service'>;
  /** Public URL of the builder without trailing slash; undefined if there is none. */
  builderUrl: string | undefined;
  allowInsecureRedirectUris: boolean;
  /** The owner of these clients in the record of the core configuration; defaults to the cluster's namespace. */
  owner?: string | undefined;
  openRefusals(): Promise<Refusals>;
  clock: Clock;
  log: Logger;
}

/** A running sync. */
interface Sync extends ClientSyncOptions, SyncOptions {
  outcome: ClientsOutcome;
  refusals: Refusals;
  reserved: ClientEntry | undefined;
}

export function createClientSync(options: ClientSyncOptions): ClientSync {
  const { builderUrl, urns } = options;
  return {
    async sync(syncOptions) {
      const outcome: ClientsOutcome = { counts: {}, conditions: {}, failures: [] };
      const reserved = builderUrl === undefined ? undefined : builderPreview(builderUrl, urns);
      const refusals = await options.openRefusals();
      await syncAll({ ...options, ...syncOptions, outcome, refusals, reserved });
      // Entries of resources that were not read are kept.
      if (!syncOptions.dryRun && outcome.skipped === undefined && outcome.failures.length === 0)
        outcome.quarantined = await refusals.settle();
      return outcome;
    },
  };
}

async function syncAll(sync: Sync): Promise<void> {
  let cluster: Cluster | undefined;
  try {
    cluster = await sync.findCluster?.();
    if (cluster) return await syncResources(sync, cluster, await cluster.list());
    sync.outcome.skipped = sync.findCluster
      ? 'no Kubernetes: neither KUBECONFIG nor a service account token'
      : 'CORE_CLIENTS is off';
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    fail(sync, error.message);
    sync.outcome.skipped = 'the resources cannot be read';
  } finally {
    await cluster?.close();
  }
  await syncReserved(sync);
}

/** Without the resources only builder-preview is synced: clients without a known resource are not removed. */
async function syncReserved(sync: Sync): Promise<void> {
  if (!sync.reserved) return;
  const store = createClientDocument({ configuration: sync.configuration, owner: sync.owner ?? '' });
  const document = await readDocument(sync, store);
  if (!document) return;
  const reserved = planReserved(document, sync.reserved);
  const plan: Plan = { verdicts: [], reserved, prune: [], held: [], claim: document.owned };
  announce(sync, plan);
  if (sync.dryRun) return;
  const { failure } = await writePlan(plan, { ...sync, store, document });
  if (failure !== undefined) sync.outcome.failures.push(failure);
}

async function syncResources(sync: Sync, cluster: Cluster, resources: CoreClientResource[]): Promise<void> {
  const { outcome, clock } = sync;
  const store = createClientDocument({ configuration: sync.configuration, owner: sync.owner ?? cluster.namespace });
  const document = await readDocument(sync, store);
  if (!document) return;
  const rules = { urnPrefix: sync.urns.prefix, allowInsecureRedirectUris: sync.allowInsecureRedirectUris };
  const plan = planSync(resources, document, { ...rules, ...sync, now: clock() });
  announce(sync, plan);
  const written = sync.dryRun ? undefined : await writePlan(plan, { ...sync, store, document });
  const reports = makeReports(plan.verdicts, (verdict) => resultOf(verdict, document, written), clock());
  outcome.conditions = countConditions(reports);
  if (!written) return;
  if (written.failure !== undefined) outcome.failures.push(written.failure);
  outcome.counts.pruned = written.pruned.length;
  const sent = await sendReports(reports, { ...sync, cluster });
  outcome.failures.push(...sent.failures);
  outcome.counts.statuses = sent.statuses;
  outcome.counts.events = sent.events;
}

async function readDocument(sync: Sync, store: ClientDocument): Promise<CoreDocument | undefined> {
  try {
    return await store.read();
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    fail(sync, `core clients cannot be read: ${error.message}`);
    return undefined;
  }
}

function fail({ outcome, log }: Sync, message: string): void {
  outcome.failures.push(message);
  log.error(message);
}

/** The result of a dry run assumes that every write succeeds. */
function resultOf(verdict: Verdict, { revision }: CoreDocument, written: Written | undefined): SyncResult | undefined {
  const { refusal, change, entry, hash, resource } = verdict;
  if (refusal) return undefined;
  if (change !== 'none')
    return written ? (written.results.get(entry.id) ?? { kind: 'failed' }) : syncedAt(revision ?? 0);
  // The client is up to date. Its revision is in the status, unless the status was lost.
  const isKnown = resource.status.syncedHash === hash && resource.status.revision !== undefined;
  return syncedAt(isKnown ? undefined : revision);
}

const syncedAt = (revision: number | undefined): SyncResult => ({ kind: 'synced', revision });

/** Logs what is about to be written, and counts it. */
function announce({ outcome, dryRun, log, allowPrune }: Sync, { verdicts, reserved, prune, held }: Plan): void {
  const { counts } = outcome;
  counts.resources = verdicts.length;
  for (const name of ['accepted', 'refused', 'created', 'updated', 'repaired', 'unchanged']) counts[name] = 0;
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1;
  };
  for (const { resource, clientId, refusal, change } of verdicts) {
    count(refusal ? 'refused' : 'accepted');
    if (refusal) log.warn({ resource: resource.name, reason: refusal.reason }, 'core client rejected');
    else if (change === 'none') count('unchanged');
    else {
      count(change);
      log.info({ client: clientId, resource: resource.name, change, dryRun }, 'core client change planned');
    }
  }
  counts.pruned = prune.length;
  counts.held = held.length;
  counts.builderPreview = reserved ? 1 : 0;
  if (reserved) log.info({ client: reserved.after.id, dryRun, ...reserved }, 'builder-preview change planned');
  if (dryRun) for (const id of prune) log.info({ client: id, dryRun }, 'core client removal planned');
  if (held.length > 0)
    log.warn(
      { clients: held.slice(0, 50), count: held.length, allowPrune },
      'core clients without a resource kept: removing this many needs --allow-prune',
    );
}
