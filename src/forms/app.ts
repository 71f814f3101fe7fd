// The form service's route table, and what its routes are made of. The guards of each route stand on its line; what a
// caller may do with one form is decided by the policy when the form is known.
import type { Express } from 'express';
import type pg from 'pg';
import type { Platform } from '../platform/platform.ts';
import { anyRole, bearer, callTenant, callTenantOrAll } from '../service/auth/bearer-guards.ts';
import { createBearerVerifier } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import { createHttpApp, type Route } from '../service/http/http-app.ts';
import { createRateLimits } from '../service/limits/rate-limit.ts';
import { aboutRoutes } from '../service/openapi/about-routes.ts';
import { createOpenApi, documentRoutes } from '../service/openapi/openapi.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createSharedPool } from '../service/postgres/shared-pool.ts';
import type { Urns } from '../service/urn.ts';
import { createCodeHashes } from './codes/code.ts';
import { createCodeStore } from './codes/store.ts';
import { createSubscribers } from './codes/subscribers.ts';
import { createVerification } from './codes/verification.ts';
import type { FormsConfig } from './config.ts';
import type { SchemaValidator } from './definitions/schema-validator.ts';
import type { DefinitionSource } from './definitions/source.ts';
import { createFormAccess } from './forms/access.ts';
import { createChangeStore } from './forms/change-store.ts';
import { readDataRoute, updateDataRoute } from './forms/data-routes.ts';
import { createDataStore } from './forms/data-store.ts';
import { mayUpdateData } from './forms/guards.ts';
import { operateFormRoute } from './forms/operation-routes.ts';
import { adminRole } from './forms/policy.ts';
import { createFormRoute, deleteFormRoute, listFormsRoute, readFormRoute } from './forms/routes.ts';
import { createDataBody } from './forms/schema.ts';
import { createFormStore } from './forms/store.ts';
import { createHealthChecks } from './health.ts';
import { createIdempotencyStore } from './idempotency/store.ts';
import { countSuppressedNotices } from './notices/metrics.ts';
import { listQuarantineRoute, releaseItemRoute } from './quarantine/routes.ts';
import { createFormsQuarantine } from './quarantine/store.ts';
import { registerRoutes } from './registers/routes.ts';

export interface FormsAppOptions {
  config: FormsConfig;
  pool: pg.Pool;
  /** Of the changes of registers, which hold their connections for long. */
  registerPool: pg.Pool;
  platform: Platform;
  definitions: DefinitionSource;
  validator: SchemaValidator;
  urns: Urns;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  /** Called after a commit that wrote to the outbox. */
  changed(): void;
}

/** Label of the metrics of the pool of requests. */
export const requestPoolName = 'requests';

const name = 'Form service';
const description = 'Draft forms for applicants with and without an account, verify codes, and data registers.';

export function formsRoutes(options: FormsAppOptions): Route[] {
  const { config, platform, urns, log, metrics, clock } = options;
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('form-service');
  const { tenants, configuration } = platform;
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId, log, metrics, clock });
  const signedIn = bearer(verifier, [clientId]);
  const tenant = callTenant(tenants);
  const tenantOrAll = callTenantOrAll(tenants);
  const admin = anyRole(adminRole);
  const parts = createParts(options);
  return [
    ...aboutRoutes({ name, description, api: '/form/v1', checks: createHealthChecks(options), clock }),
    createFormRoute([signedIn, tenant], parts),
    listFormsRoute([signedIn, admin, tenant], parts),
    readFormRoute([signedIn, tenant], parts),
    operateFormRoute([signedIn, tenant], parts),
    deleteFormRoute([signedIn, tenant], parts),
    readDataRoute([signedIn, tenant], parts),
    updateDataRoute([signedIn, tenant, mayUpdateData(parts.access)], parts),
    listQuarantineRoute([signedIn, admin, tenantOrAll], parts),
    releaseItemRoute([signedIn, admin, tenantOrAll], parts),
    // Their guards stand on the lines of their own table: they take another audience and other roles.
    ...registerRoutes({
      ...{ verifier, tenants, urns, configuration, metrics, pool: options.registerPool },
      stepMs: config.PLATFORM_TIMEOUT,
      anonymousReads: createRateLimits(options).local({
        ...{ name: 'anonymous-reads', most: config.ANONYMOUS_READ_LIMIT, window: config.ANONYMOUS_READ_WINDOW },
      }),
    }),
  ];
}

function createParts(options: FormsAppOptions) {
  const { config, platform, definitions, validator, urns, metrics, clock, changed } = options;
  const { notifications } = platform;
  const secret = config.CODE_KEY;
  const pool = shareRequestPool(options);
  const forms = createFormStore(pool);
  const codes = createCodeStore(pool);
  const hashes = createCodeHashes(secret);
  const ensureSubscriber = createSubscribers({ pool, notifications, urns });
  const codeLifetime = config.CODE_LIFETIME;
  return {
    forms,
    answers: createDataStore(pool),
    changes: createChangeStore(pool, countSuppressedNotices(metrics)),
    access: createFormAccess({ forms, definitions, clock }),
    idempotency: createIdempotencyStore(pool),
    quarantine: createFormsQuarantine({ pool, clock }),
    verification: createVerification({ store: codes, hashes, notifications, ensureSubscriber, codeLifetime, clock }),
    dataBody: createDataBody(urns.prefix),
    definitions,
    codes,
    hashes,
    validator,
    secret,
    clock,
    changed,
  };
}

/** One locked form, or one tenant with slow statements, leaves the others their connections (decision 0032). */
function shareRequestPool({ config, pool, metrics }: FormsAppOptions) {
  const details = {
    busy: 'Too many requests for this form or of this tenant are running.',
    locked: 'The form is being changed by another request.',
  };
  return createSharedPool({ pool, size: config.DATABASE_POOL_SIZE, name: requestPoolName, details, metrics });
}

export function createFormsApp(options: FormsAppOptions): Express {
  const { config, log, metrics } = options;
  const routes = formsRoutes(options);
  const document = () => createOpenApi({ title: name, version: '1', description, routes });
  return createHttpApp({
    log,
    metrics,
    routes,
    trustedProxies: config.TRUSTED_PROXIES,
    corsOrigins: config.CORS_ORIGINS,
    bodyLimit: config.BODY_LIMIT,
    extend: (app) => void app.use(documentRoutes(document)),
  });
}
