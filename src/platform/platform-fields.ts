// The environment variables of the platform clients. Each process adds them and accessFields to its configuration
// schema.
import { z } from 'zod';
import { httpUrl, secret } from '../service/operations/config.ts';
import { isoDuration } from '../service/operations/duration.ts';

export const platformFields = {
  DIRECTORY_URL: httpUrl().describe('Base URL of the directory service, such as http://directory:8080/directory/v2'),
  CLIENT_ID: z
    .string()
    .min(1)
    .optional()
    .describe('Client id of this service’s account in the realm core; by default the service’s URN'),
  CLIENT_SECRET: secret(8).describe('Client secret of that account'),
  PLATFORM_CACHE_TTL: isoDuration('PT60S', { max: 'P1D' }).describe(
    'Age up to which a cached response of a platform service is fresh; see “Cached responses” in docs/configuration.md',
  ),
  PLATFORM_TIMEOUT: isoDuration('PT10S', { max: 'PT1H', positive: true }).describe(
    'Longest duration of a call to a platform service, including retries',
  ),
};
