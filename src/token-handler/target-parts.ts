// Puts together what target requests need, for one process: limits, upstreams, connections, streams and the relay.
import type { IncomingMessage } from 'node:http';
import type { Directory } from '../platform/directory.ts';
import type { Clock } from '../service/clock.ts';
import type { Route } from '../service/http/http-app.ts';
import { addressLimit, createRateLimits, rateLimit } from '../service/limits/rate-limit.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Redis } from '../service/redis/redis.ts';
import type { Urns } from '../service/urn.ts';
import type { ClientCatalog } from './clients/catalog.ts';
import type { TokenHandlerConfig } from './config.ts';
import { liveSession, type SessionGuardOptions, sessionOf } from './sessions/guards.ts';
import { createConnections } from './targets/connections.ts';
import { createPassingBuffers } from './targets/passing-buffers.ts';
import { createReadAhead } from './targets/read-ahead.ts';
import { createRelay } from './targets/relay.ts';
import { createRequestHeaders } from './targets/request-headers.ts';
import { isTargetRequest, targetRoutes } from './targets/routes.ts';
import { createStreams } from './targets/streams.ts';
import { createTargetMetrics, exposeConnections } from './targets/target-metrics.ts';
import { createTransferRate } from './targets/transfer-rate.ts';
import { createUpstreams } from './targets/upstreams.ts';

export interface TargetPartsOptions {
  config: TokenHandlerConfig;
  catalog: Pick<ClientCatalog, 'find'>;
  directory: Pick<Directory, 'resolve'>;
  guards: SessionGuardOptions;
  redis: Redis | undefined;
  urns: Pick<Urns, 'prefix'>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}

export interface TargetParts {
  routes: Route[];
  mayUpgrade(request: IncomingMessage): boolean;
  close(): Promise<void>;
}

export function createTargetParts(options: TargetPartsOptions): TargetParts {
  const { config, catalog, directory, urns, log, metrics } = options;
  const allowed = config.UPSTREAM_ALLOWED_DOMAINS;
  if (allowed === undefined) log.warn('UPSTREAM_ALLOWED_DOMAINS is not set: targets may lead to any host');
  const rateLimits = createRateLimits(options);
  const window = config.TARGET_WINDOW;
  const ofAddress = rateLimits.local({ name: 'targets-address', most: config.TARGET_ADDRESS_LIMIT, window });
  const ofSession = rateLimits.local({ name: 'targets-session', most: config.TARGET_SESSION_LIMIT, window });
  const targetMetrics = createTargetMetrics(metrics);
  const connections = createConnections({
    perUpstream: config.UPSTREAM_CONNECTIONS,
    personShare: config.UPSTREAM_PERSON_SHARE,
    tenantShare: config.UPSTREAM_TENANT_SHARE,
    onRefused: (reason) => targetMetrics.refusals.inc({ reason }),
  });
  exposeConnections(metrics, connections);
  const streams = createStreams({ perSession: config.SESSION_STREAMS, total: config.STREAMS, metrics });
  const rate = createTransferRate({ least: config.BODY_MIN_RATE, window: config.BODY_RATE_WINDOW });
  return {
    routes: targetRoutes({
      guards: [
        addressLimit(ofAddress),
        liveSession(options.guards),
        rateLimit(ofSession, (_request, response) => sessionOf(response).session.handle),
      ],
      catalog,
      upstreams: createUpstreams({ directory, urnPrefix: urns.prefix, allowed }),
      relay: createRelay({
        connections,
        streams,
        rate,
        bodies: { buffers: createPassingBuffers(), readAhead: createReadAhead() },
        metrics: targetMetrics,
        firstByte: config.UPSTREAM_TIMEOUT,
      }),
      requestHeaders: createRequestHeaders({
        tenantHeader: config.TENANT_HEADER,
        alsoDropped: config.TARGET_DROPPED_HEADERS,
      }),
    }),
    mayUpgrade: isTargetRequest,
    async close() {
      rateLimits.close();
      streams.close();
      rate.close();
      await connections.close();
    },
  };
}
