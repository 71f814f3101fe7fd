// Builds the modules that proxy requests for targets: guards, upstreams, connections, streams and the handler.
import type { Directory } from '../../platform/directory.ts';
import { addressLimit, type RateLimits, rateLimit } from '../../service/limits/rate-limit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import type { ClientCatalog } from '../clients/catalog.ts';
import type { TokenHandlerConfig } from '../config.ts';
import { csrf, liveSession, notEmbedded, sessionOf, sessionTenant, type TenantLookup } from '../sessions/guards.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createPassingBuffers, createReadAhead } from './body-memory.ts';
import { type Connections, createConnections } from './connections.ts';
import { createTargetHandler, type TargetGuards, type TargetHandler } from './handler.ts';
import { createProxy } from './proxied-request.ts';
import { createRequestHeaders } from './request-headers.ts';
import { createStreams } from './streams.ts';
import { createConnectionMetrics, createTargetMetrics, type TargetMetrics } from './target-metrics.ts';
import { createTransferRate } from './transfer-rate.ts';
import { createUpstreams } from './upstreams.ts';

export interface TargetsOptions {
  config: TokenHandlerConfig;
  sessions: Pick<Sessions, 'ofRequest'>;
  tenants: TenantLookup;
  rateLimits: RateLimits;
  catalog: Pick<ClientCatalog, 'find'>;
  directory: Pick<Directory, 'resolve'>;
  urns: Pick<Urns, 'prefix'>;
  log: Logger;
  metrics: Metrics;
}

export interface Targets {
  guards: TargetGuards;
  handler: TargetHandler;
  close(): Promise<void>;
}

export function createTargets(options: TargetsOptions): Targets {
  const { config, catalog, directory, urns, log, metrics } = options;
  const allowed = config.UPSTREAM_ALLOWED_DOMAINS;
  if (allowed === undefined) log.warn('UPSTREAM_ALLOWED_DOMAINS is not set: targets may lead to any host');
  const guards = createGuards(options);
  const upstreams = createUpstreams({ directory, urnPrefix: urns.prefix, allowed });
  const requestHeaders = createRequestHeaders({
    tenantHeader: config.TENANT_HEADER,
    alsoDropped: config.TARGET_DROPPED_HEADERS,
  });
  const { registry, dependencyFailures } = metrics;
  const targetMetrics = createTargetMetrics({ registry, namesTargets: config.METRICS_TARGETS === 'on' });
  const connections = openConnections(config, targetMetrics);
  createConnectionMetrics({ registry, count: connections.count });
  const streams = createStreams({ perSession: config.SESSION_STREAMS, total: config.STREAMS, metrics: targetMetrics });
  const rate = createTransferRate({ least: config.BODY_MIN_RATE, window: config.BODY_RATE_WINDOW });
  const bodies = { buffers: createPassingBuffers(), readAhead: createReadAhead() };
  const firstByte = config.UPSTREAM_TIMEOUT;
  const proxyMetrics = { ...targetMetrics, dependencyFailures };
  const forward = createProxy({ connections, streams, rate, bodies, metrics: proxyMetrics, firstByte });
  return {
    guards,
    handler: createTargetHandler({ guards, catalog, upstreams, requestHeaders, forward, metrics: targetMetrics }),
    async close() {
      streams.close();
      rate.close();
      await connections.close();
    },
  };
}

function createGuards({ config, sessions, tenants, rateLimits }: TargetsOptions): TargetGuards {
  const window = config.TARGET_WINDOW;
  const ofAddress = rateLimits.local({ name: 'targets-address', most: config.TARGET_ADDRESS_LIMIT, window });
  const ofSession = rateLimits.local({ name: 'targets-session', most: config.TARGET_SESSION_LIMIT, window });
  return {
    notEmbedded: notEmbedded(config.SESSION_COOKIE),
    addressLimit: addressLimit(ofAddress),
    liveSession: liveSession(sessions),
    sessionTenant: sessionTenant(tenants, config.TENANT_HEADER),
    csrf,
    sessionLimit: rateLimit(ofSession, (response) => sessionOf(response).session.handle),
  };
}

function openConnections(config: TokenHandlerConfig, { refusals }: Pick<TargetMetrics, 'refusals'>): Connections {
  return createConnections({
    perUpstream: config.UPSTREAM_CONNECTIONS,
    personShare: config.UPSTREAM_PERSON_SHARE,
    tenantShare: config.UPSTREAM_TENANT_SHARE,
    onRefused: (reason) => refusals.inc({ reason }),
  });
}
