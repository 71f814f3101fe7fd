// Builds the objects that the routes for form definitions use.
import type { Configuration } from '../../platform/configuration.ts';
import type { Clock } from '../../service/clock.ts';
import type { RateLimits } from '../../service/limits/rate-limit.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Urns } from '../../service/urn.ts';
import type { FormsConfig } from '../config.ts';
import { createDefinitionCheck } from './check.ts';
import { createDefinitionTexts } from './definition-texts.ts';
import { createDefinitionList } from './list.ts';
import type { SchemaValidator } from './schema-validator.ts';
import type { DefinitionSource } from './source.ts';

export interface DefinitionServicesOptions {
  config: Pick<FormsConfig, 'PLATFORM_TIMEOUT'>;
  configuration: Configuration;
  validator: Pick<SchemaValidator, 'inspect'>;
  definitions: DefinitionSource;
  limits: RateLimits;
  urns: Urns;
  clock: Clock;
  metrics: Pick<Metrics, 'queueRefusals'>;
}

export function createDefinitionServices(options: DefinitionServicesOptions) {
  return {
    check: createDefinitionCheck({ ...options, callTimeout: options.config.PLATFORM_TIMEOUT }),
    checks: options.limits.local({ name: 'definition-checks', most: 60, window: 60_000 }),
    list: createDefinitionList(options),
    find: options.definitions.find,
    textOf: createDefinitionTexts(options.clock),
  };
}
