// Environment variables of the platform clients. Each process adds them to its own schema, beside accessFields.
import { z } from 'zod';
import { httpUrl, isoDuration, secret } from '../service/operations/config.ts';

export const platformFields = {
  DIRECTORY_URL: httpUrl().describe('The directory service, such as http://directory:8080/directory/v2'),
  CLIENT_ID: z.string().min(1).optional().describe("The service's own account in realm core; default its URN"),
  CLIENT_SECRET: secret(8).describe('Secret of that account'),
  PLATFORM_CACHE_TTL: isoDuration('PT60S').describe('How long answers of platform services count as fresh'),
  PLATFORM_TIMEOUT: isoDuration('PT10S').describe('Longest time of a call to a platform service, retries included'),
};
