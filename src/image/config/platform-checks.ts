// Checks the dependencies that processes reach over HTTP: the identity provider and the directory.
import { directoryOverrides } from '../../platform/directory-variables.ts';
import { createPlatform, type Platform, type PlatformConfig } from '../../platform/platform.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { checkIssuer, type IdentityProviderConfig } from '../../service/auth/identity-provider.ts';
import { codeOfCause, codeOfError } from '../../service/error-code.ts';
import { definedMembers } from '../../service/json-value.ts';
import { ConfigError } from '../../service/operations/config.ts';
import { createLogger } from '../../service/operations/log.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { WrongSetting } from '../../service/operations/startup-check.ts';
import { createUrns } from '../../service/urn.ts';
import type { Finding } from './finding.ts';

export type AccountConfig = PlatformConfig & { URN_PREFIX: string };

/** Checks that the identity provider has the realm core, and that this realm has the configured issuer. */
export function checkProvider(config: IdentityProviderConfig): Promise<Finding[]> {
  return explained('ACCESS_SERVICE_URL', () => checkIssuer(config));
}

/**
 * Checks that the identity provider accepts the credentials of the process's account. `secretName` is the name of the
 * setting with the account's secret.
 */
export function checkAccount(
  platform: Platform,
  secretName: string,
  account: Pick<Platform['account'], 'authenticate'> = platform.account,
): Promise<Finding[]> {
  return explained(secretName, () => account.authenticate());
}

/**
 * Checks that the directory knows the platform services that the process calls. `services` have the form
 * `<service>:<version>`.
 */
export async function checkDirectory(
  platform: Platform,
  { config, services }: { config: AccountConfig; services: readonly string[] },
): Promise<Finding[]> {
  const urns = createUrns(config.URN_PREFIX);
  const findings: Finding[] = [];
  for (const service of services) {
    const urn = urns.service(service);
    const [finding] = await explained('DIRECTORY_URL', () => platform.directory.resolve(urn));
    if (!finding) continue;
    const isUnknown = finding.severity === 'error';
    findings.push(isUnknown ? { ...finding, problem: `the directory has no usable entry for ${urn}` } : finding);
    // If the directory is down, all other lookups would fail too, so they are skipped.
    if (!isUnknown) break;
  }
  return findings;
}

/** Creates the clients of the platform services. The clients log nothing, because the findings report failures. */
export function openPlatform(config: AccountConfig, service: string, env: NodeJS.ProcessEnv): Platform {
  const log = createLogger({ name: 'config', level: 'silent' });
  const urns = createUrns(config.URN_PREFIX);
  return createPlatform({ config, service, urns, metrics: createMetrics(), log, env: withUsableOverrides(env) });
}

/** Leaves out invalid `DIR_…` variables, because the check of the settings has already reported them. */
function withUsableOverrides(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return directoryOverrides(env);
  } catch (error) {
    if (error instanceof ConfigError) return {};
    throw error;
  }
}

async function explained(name: string, work: () => Promise<unknown>): Promise<Finding[]> {
  try {
    await work();
    return [];
  } catch (error) {
    return [explain(name, error)];
  }
}

function explain(name: string, error: unknown): Finding {
  if (error instanceof WrongSetting) {
    const facts = Object.entries(definedMembers(error.facts));
    const suffix = facts.length > 0 ? ` (${facts.map(([fact, value]) => `${fact} ${value}`).join(', ')})` : '';
    return { severity: 'error', name, problem: error.message + suffix };
  }
  if (error instanceof PlatformError) {
    const isWrong = error.service === 'directory' && ['absent', 'unusable'].includes(error.reason ?? '');
    const details = [error.upstreamStatus, error.reason].filter((part) => part !== undefined);
    const suffix = details.length > 0 ? ` (${details.join(', ')})` : '';
    return { severity: isWrong ? 'error' : 'unreachable', name, problem: plain(error) + suffix };
  }
  const code = codeOfCause(error) ?? codeOfError(error);
  const suffix = code === undefined ? '' : ` (${code})`;
  return { severity: 'unreachable', name, problem: `the identity provider cannot be reached${suffix}` };
}

const plain = ({ service, kind }: PlatformError) =>
  `the ${service.replaceAll('-', ' ')} did not respond as expected: ${kind}`;
