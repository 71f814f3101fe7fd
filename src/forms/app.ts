// The form service's route table, and what its routes are made of. The guards of each route stand on its line; what a
// caller may do with one form is decided by the policy when the form is known.
import type { Express } from 'express';
import type pg from 'pg';
import type { Platform } from '../platform/platform.ts';
import { aboutRoutes } from '../service/about-routes.ts';
import { anyRole, bearer, callTenant } from '../service/bearer-guards.ts';
import type { Clock } from '../service/clock.ts';
import { createHttpApp, type Route } from '../service/http-app.ts';
import { createBearerVerifier } from '../service/identity.ts';
import type { Logger } from '../service/log.ts';
import type { Metrics } from '../service/metrics.ts';
import { createOpenApi, documentRoutes } from '../service/openapi.ts';
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
import { registerRoutes } from './registers/routes.ts';

export interface FormsAppOptions {
  config: FormsConfig;
  pool: pg.Pool;
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

const name = 'Form service';
const description = 'Draft forms for applicants with and without an account, verify codes, and data registers.';

export function formsRoutes(options: FormsAppOptions): Route[] {
  const { config, pool, platform, urns, log, metrics, clock } = options;
  const accessUrl = config.ACCESS_SERVICE_URL;
  const accessPublicUrl = config.ACCESS_SERVICE_PUBLIC_URL ?? accessUrl;
  const clientId = urns.service('form-service');
  const { tenants, configuration } = platform;
  const verifier = createBearerVerifier({ accessUrl, accessPublicUrl, tenants, clientId, log, metrics, clock });
  const signedIn = bearer(verifier, [clientId]);
  const tenant = callTenant(tenants);
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
    // Their guards stand on the lines of their own table: they take another audience and other roles.
    ...registerRoutes({
      ...{ verifier, tenants, urns, configuration, pool, stepMs: config.PLATFORM_TIMEOUT },
      anonymousReads: {
        reads: config.ANONYMOUS_READ_LIMIT,
        seconds: Math.max(1, Math.ceil(config.ANONYMOUS_READ_WINDOW / 1_000)),
      },
    }),
  ];
}

function createParts({ config, pool, platform, definitions, validator, urns, clock, changed }: FormsAppOptions) {
  const { notifications } = platform;
  const secret = config.CODE_KEY;
  const forms = createFormStore(pool);
  const codes = createCodeStore(pool);
  const hashes = createCodeHashes(secret);
  const ensureSubscriber = createSubscribers({ pool, notifications, urns });
  const codeLifetime = config.CODE_LIFETIME;
  return {
    forms,
    answers: createDataStore(pool),
    changes: createChangeStore(pool),
    access: createFormAccess({ forms, definitions, clock }),
    idempotency: createIdempotencyStore(pool),
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
