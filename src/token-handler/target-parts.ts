// Puts together what target requests need, for one process: limits, upstreams, connections, streams and the relay.
import type { IncomingMessage } from 'node:http';
import type { Directory } from '../platform/directory.ts';
import type { Clock } from '../service/clock.ts';
import type { Route } from '../service/http-app.ts';
import type { Logger } from '../service/log.ts';
import type { Metrics } from '../service/metrics.ts';
import type { Redis } from '../service/redis.ts';
import type { Urns } from '../service/urn.ts';
import type { ClientCatalog } from './clients/catalog.ts';
import type { TokenHandlerConfig } from './config.ts';
import { liveSession, type SessionGuardOptions } from './sessions/guards.ts';
import { createConnections } from './targets/connections.ts';
import { addressLimit, sessionLimit } from './targets/guards.ts';
import { createRequestCounters } from './targets/limit.ts';
import { createPassingBuffers } from './targets/passing-buffers.ts';
import { createRelay } from './targets/relay.ts';
import { createRequestHeaders } from './targets/request-headers.ts';
import { isTargetRequest, targetRoutes } from './targets/routes.ts';
import { createStreams } from './targets/streams.ts';
import { createUpstreams } from './targets/upstreams.ts';

export interface TargetPartsOptions {
  config: TokenHandlerConfig;
  catalog: Pick<ClientCatalog, 'find'>;
  directory: Pick<Directory, 'resolve' | 'resolved'>;
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
  const counters = createRequestCounters(options);
  const window = config.TARGET_WINDOW;
  const ofAddress = counters.create({ name: 'address', most: config.TARGET_ADDRESS_LIMIT, window });
  const ofSession = counters.create({ name: 'session', most: config.TARGET_SESSION_LIMIT, window });
  const connections = createConnections({ perUpstream: config.UPSTREAM_CONNECTIONS });
  const streams = createStreams({ perSession: config.SESSION_STREAMS, metrics });
  return {
    routes: targetRoutes({
      guards: [addressLimit(ofAddress), liveSession(options.guards), sessionLimit(ofSession)],
      catalog,
      upstreams: createUpstreams({ directory, urnPrefix: urns.prefix, allowed }),
      relay: createRelay({
        connections,
        streams,
        buffers: createPassingBuffers(),
        metrics,
        firstByte: config.UPSTREAM_TIMEOUT,
      }),
      requestHeaders: createRequestHeaders({
        tenantHeader: config.TENANT_HEADER,
        alsoDropped: config.TARGET_DROPPED_HEADERS,
      }),
    }),
    mayUpgrade: isTargetRequest,
    async close() {
      counters.close();
      streams.close();
      await connections.close();
    },
  };
}
