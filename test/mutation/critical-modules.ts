// Lists the security-critical modules, which mutation tests should cover.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Folders with code that authorises requests or protects secrets. */
const criticalFolders = [
  'src/token-handler/targets',
  'src/token-handler/sessions',
  'src/token-handler/sign-in',
  'src/service/auth',
  'src/token-handler/clients',
  'src/token-handler/logout',
  'src/service/clients',
  'src/service/keys',
  'src/forms/codes',
  'src/forms/expiry',
];
const criticalFiles = [
  'src/platform/document-budget.ts',
  'src/service/http/cookie-header.ts',
  'src/service/http/cross-origin.ts',
  'src/service/http/own-calls.ts',
  'src/service/http/uncompressed-responses.ts',
  'src/service/same-text.ts',
  'src/service/storable-text.ts',
  'src/forms/addresses/address.ts',
  'src/forms/apply/code-routes.ts',
  'src/forms/apply/cookies.ts',
  'src/forms/apply/counts.ts',
  'src/forms/apply/guards.ts',
  'src/forms/apply/hashes.ts',
  'src/forms/apply/notice-routes.ts',
  'src/forms/apply/store.ts',
  'src/forms/forms/access.ts',
  'src/forms/forms/history.ts',
  'src/forms/forms/idempotency.ts',
  'src/forms/forms/policy.ts',
  'src/forms/notices/links.ts',
  'src/forms/registers/policy.ts',
  'src/platform-server/codes/code.ts',
  'src/platform-server/configuration/policy.ts',
  'src/platform-server/notifications/policy.ts',
  'src/platform-server/tenants/policy.ts',
];
/** Files that read or create a key ring only to pass it on, or to check that it decrypts what is stored. */
export const keyRingWiring: readonly string[] = [
  'src/forms/apply/intake-application.ts',
  'src/forms/apply/settings.ts',
  'src/image/config/key-ring-check.ts',
  'src/token-handler/config.ts',
  'src/token-handler/foundation.ts',
  'src/token-handler/start.ts',
];
/** Files of these folders that are not security-critical, such as tests, metrics, schemas and logs. */
const uncritical = /(?:\.test|-metrics|\/metrics|\/migrations|\/schema|-log|-audit)\.ts$/;

/** Returns the paths of all security-critical modules, sorted. */
export function criticalModules(): string[] {
  const root = join(import.meta.dirname, '../..');
  const files = criticalFolders.flatMap((folder) => readdirSync(join(root, folder)).map((file) => `${folder}/${file}`));
  return [...files.filter((file) => file.endsWith('.ts') && !uncritical.test(file)), ...criticalFiles].sort();
}
