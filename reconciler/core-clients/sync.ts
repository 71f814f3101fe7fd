// Writes two kinds of clients to the core configuration of the token handler: clients that Formgate maintains, such as
// builder-preview, and clients that CoreClient resources describe. The sync never changes a client that it does not
// own, and stops writing when the run has lost its lease.
import type { Configuration } from '../../src/platform/configuration.ts';
import type { Directory } from '../../src/platform/directory.ts';
import { PlatformError } from '../../src/platform/platform-error.ts';
import type { TenantDirectory } from '../../src/platform/tenants.ts';
import { builderPreviewId, type ClientEntry, consoleId } from '../../src/service/clients/client-rules.ts';
import type { RedirectUriRules } from '../../src/service/clients/redirect-uri.ts';
import type { Clock } from '../../src/service/clock.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import type { Urns } from '../../src/service/urn.ts';
import type { Writer } from '../lease.ts';
import { isInEffect } from './checks.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-calls.ts';
import { type ClientDocument, type CoreDocument, createClientDocument } from './document.ts';
import { reportHeld } from './held-clients.ts';
import { type Plan, planMaintained, planSync, type Verdict } from './plan.ts';
import type { Refusals } from './refusals.ts';
import { countConditions, makeReports, sendReports } from './report.ts';
import type { CoreClientResource } from './resource.ts';
import { findShadows } from './shadows.ts';
import type { Checks, SyncResult } from './status.ts';
import { checkUpstreams } from './upstreams.ts';
import { type Written, writePlan } from './writes.ts';

/** The result of one sync. With `dryRun`, the result that a real sync would have. */
export interface ClientsOutcome {
  /** Number of clients for each outcome, such as `created`. */
  counts: Record<string, number>;
  /** Number of resources for each condition, such as `Ready=True`. */
  conditions: Record<string, number>;
  /** Failures of the infrastructure, in one short line each. If the list is not empty, the sync has failed. */
  failures: string[];
  /** Number of clients and statuses that were quarantined; absent in a dry run. */
  quarantined?: number;
  /** The reason why the resources were not read; absent if they were read. */
  skipped?: string;
}

/** In a dry run, the sync logs the changes without writing them. */
export interface SyncOptions extends Writer {
  /** If true, this sync may remove more than half of the owned clients. */
  allowPrune: boolean;
  /** Called before every write. Rejects if the run has lost its lease; the sync then rejects too. */
  renewLease(): Promise<void>;
  /** If this signal is aborted, the sync ends early. The next sync writes the missing statuses. */
  signal?: AbortSignal | undefined;
}

export interface ClientSync {
  /**
   * Performs one sync. If `renewLease` rejects, rejects with the same reason. Also rejects if the quarantine cannot be
   * read or written.
   */
  sync(options: SyncOptions): Promise<ClientsOutcome>;
}

export interface ClientSyncOptions {
  configuration: Pick<Configuration, 'read' | 'update' | 'deleteProperty'>;
  tenants: Pick<TenantDirectory, 'all'>;
  directory: Pick<Directory, 'resolve'>;
  /** Called once in each sync, which closes the connection at its end. Undefined if resources must not be read. */
  findCluster: (() => Promise<Cluster | undefined>) | undefined;
  urns: Pick<Urns, 'prefix' | 'service'>;
  /** The clients that Formgate itself maintains. A CoreClient resource with one of their ids is rejected. */
  maintained: readonly ClientEntry[];
  redirectUriRules: RedirectUriRules;
  /**
   * The owner under which the clients are recorded in the core configuration. The default is the cluster's namespace.
   */
  owner?: string | undefined;
  openRefusals(): Promise<Refusals>;
  clock: Clock;
  log: Logger;
}

/** The state of a running sync. */
interface Sync extends ClientSyncOptions, SyncOptions {
  outcome: ClientsOutcome;
  refusals: Refusals;
}

export function createClientSync(options: ClientSyncOptions): ClientSync {
  return {
    async sync(syncOptions) {
      const outcome: ClientsOutcome = { counts: {}, conditions: {}, failures: [] };
      const refusals = await options.openRefusals();
      await syncAll({ ...options, ...syncOptions, outcome, refusals });
      if (syncOptions.dryRun) return outcome;
      const settled = settledClients(options, syncOptions, outcome);
      return { ...outcome, quarantined: await refusals.settle(syncOptions.transact, settled) };
    },
  };
}

/**
 * Returns the argument of `settle`: the ids of the clients whose quarantine entries it may remove. Undefined stands
 * for the entries of all clients and statuses. If the sync did not reach an item, the item's entry must stay.
 * Otherwise, the next sync would retry the item.
 */
function settledClients(
  { maintained }: ClientSyncOptions,
  { signal }: SyncOptions,
  { failures, skipped }: ClientsOutcome,
): string[] | undefined {
  if (failures.length > 0 || signal?.aborted) return [];
  return skipped === undefined ? undefined : maintained.map(({ id }) => id);
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
  await syncMaintained(sync);
}

/** Syncs only the clients that Formgate maintains, because the resources are unknown. Removes no clients. */
async function syncMaintained(sync: Sync): Promise<void> {
  if (sync.maintained.length === 0) return;
  const store = createClientDocument({ configuration: sync.configuration, owner: sync.owner ?? '' });
  const document = await readDocument(sync, store);
  if (!document) return;
  const maintained = planMaintained(document, sync.maintained);
  const plan: Plan = { verdicts: [], maintained, prune: [], held: [], owned: document.owned };
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
  const rules = { urnPrefix: sync.urns.prefix, redirectUriRules: sync.redirectUriRules };
  const plan = planSync(resources, document, { ...rules, ...sync, now: clock() });
  announce(sync, plan);
  const written = sync.dryRun ? undefined : await writePlan(plan, { ...sync, store, document });
  const checks = await runChecks(sync, plan);
  const reports = makeReports(plan.verdicts, (verdict) => resultOf(verdict, document, written), checks, clock());
  outcome.conditions = countConditions(reports);
  if (!written) return;
  if (written.failure !== undefined) outcome.failures.push(written.failure);
  outcome.counts.pruned = written.pruned.length;
  const sent = await sendReports(reports, { ...sync, cluster });
  outcome.failures.push(...sent.failures);
  outcome.counts.statuses = sent.statuses;
  outcome.counts.events = sent.events;
  if (sent.failures.length > 0) return;
  const held = await reportHeld(plan.held, { ...sync, cluster });
  outcome.counts.events += held.events;
  if (held.failure !== undefined) outcome.failures.push(held.failure);
}

/**
 * Checks tenants and upstreams. Call this function only after the writes, so that slow tenants do not delay the writes.
 */
async function runChecks(sync: Sync, { verdicts }: Plan): Promise<Checks> {
  const entries = verdicts.flatMap(({ entry }) => entry ?? []);
  const upstreams = await checkUpstreams(
    entries.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)),
    sync.directory,
  );
  const ids = [...verdicts.filter(isInEffect).map(({ clientId }) => clientId), ...sync.maintained.map(({ id }) => id)];
  const shadows = await findShadows(new Set(ids.filter((id) => id !== undefined)), sync);
  sync.outcome.counts.tenantsRead = shadows?.read ?? 0;
  sync.outcome.counts.tenantsUnread = shadows?.unread.length ?? 0;
  for (const [client, tenants] of shadows?.affected ?? [])
    sync.log.warn(
      { client, tenants: tenants.slice(0, 20).map(({ id }) => id), count: tenants.length },
      'core client shadows clients of tenants',
    );
  return { shadows, upstreams };
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

/** Returns the result for a resource's client. For a dry run, assumes that every write succeeds. */
function resultOf(verdict: Verdict, { revision }: CoreDocument, written: Written | undefined): SyncResult | undefined {
  const { rejection, change, entry, hash, resource } = verdict;
  if (rejection) return undefined;
  if (change !== 'none')
    return written ? (written.results.get(entry.id) ?? { kind: 'failed' }) : syncedAt(revision ?? 0);
  // The client is up to date. If its status contains no revision, the current revision is reported.
  const isKnown = resource.status.syncedHash === hash && resource.status.revision !== undefined;
  return syncedAt(isKnown ? undefined : revision);
}

const syncedAt = (revision: number | undefined): SyncResult => ({ kind: 'synced', revision });

/** Names of the counters for the clients that Formgate maintains, keyed by client id. */
const maintainedCounts = { [builderPreviewId]: 'builderPreview', [consoleId]: 'console' };

/** Logs and counts the planned changes. */
function announce({ outcome, dryRun, log, allowPrune }: Sync, { verdicts, maintained, prune, held }: Plan): void {
  const { counts } = outcome;
  counts.resources = verdicts.length;
  for (const name of ['accepted', 'refused', 'created', 'updated', 'repaired', 'unchanged']) counts[name] = 0;
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1;
  };
  for (const { resource, clientId, rejection, change } of verdicts) {
    count(rejection ? 'refused' : 'accepted');
    if (rejection) log.warn({ resource: resource.name, reason: rejection.reason }, 'core client rejected');
    else if (change === 'none') count('unchanged');
    else {
      count(change);
      log.info({ client: clientId, resource: resource.name, change, dryRun }, 'core client change planned');
    }
  }
  counts.pruned = prune.length;
  counts.held = held.length;
  for (const [id, name] of Object.entries(maintainedCounts))
    counts[name] = maintained.filter(({ after }) => after.id === id).length;
  for (const change of maintained)
    log.info({ client: change.after.id, dryRun, ...change }, 'maintained core client change planned');
  if (dryRun) for (const id of prune) log.info({ client: id, dryRun }, 'core client removal planned');
  if (held.length > 0)
    log.warn(
      { clients: held.slice(0, 50), count: held.length, allowPrune },
      'core clients without a resource kept: removing this many needs --allow-prune',
    );
}
