// Checks at startup that the identity provider is the configured one, and that it accepts this service's own account.
import { z } from 'zod';
import { codeOfCause } from '../error-code.ts';
import { jsonOrUndefined } from '../json-value.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { type StartupCheck, type StartupPace, startupCheck, WrongSetting } from '../operations/startup-check.ts';
import { fetchFromProvider } from './provider-fetch.ts';

export interface IdentityProviderConfig {
  ACCESS_SERVICE_URL: string;
  ACCESS_SERVICE_PUBLIC_URL?: string | undefined;
}

export interface IdentityProviderOptions {
  config: IdentityProviderConfig;
  /**
   * The service's own account; undefined if the process has none. `authenticate` throws WrongSetting for rejected
   * credentials.
   */
  account?: { authenticate(): Promise<void> } | undefined;
  log: Logger;
  metrics: Metrics;
  pace?: Partial<StartupPace> | undefined;
}

/** Timeout of the request for the discovery document, in milliseconds. */
const longestWait = 10_000;
const discoverySchema = z.looseObject({ issuer: z.string() });
/**
 * Codes of TLS errors that show a wrong setting. An expired certificate is not a wrong setting, because its renewal
 * ends the error.
 */
const untrusted = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_|ERR_SSL_)/;

export function checkIdentityProvider(options: IdentityProviderOptions): StartupCheck {
  const { config, account, log, metrics, pace } = options;
  return startupCheck({
    ...{ what: 'the identity provider', log, metrics, pace },
    async check() {
      await checkIssuer(config);
      await account?.authenticate();
    },
  });
}

/**
 * Throws WrongSetting if the issuer of the realm core differs from the configured one (OpenID Connect Discovery section
 * 4.3).
 */
export async function checkIssuer(config: IdentityProviderConfig): Promise<void> {
  const { status, text } = await fetchDiscovery(`${config.ACCESS_SERVICE_URL}/realms/core`);
  if (status >= 500 || status === 408 || status === 429)
    throw new Error(`the identity provider responded with ${status}`);
  const found = status === 200 ? discoverySchema.safeParse(jsonOrUndefined(text)).data : undefined;
  if (!found)
    throw new WrongSetting('ACCESS_SERVICE_URL leads to no identity provider with the realm core; check it', {
      status,
    });
  const expected = `${config.ACCESS_SERVICE_PUBLIC_URL ?? config.ACCESS_SERVICE_URL}/realms/core`;
  if (found.issuer !== expected)
    throw new WrongSetting("the identity provider's issuer differs; check ACCESS_SERVICE_PUBLIC_URL", {
      issuer: found.issuer,
      expected,
    });
}

async function fetchDiscovery(realm: string): Promise<{ status: number; text: string }> {
  try {
    const signal = AbortSignal.timeout(longestWait);
    const response = await fetchFromProvider(`${realm}/.well-known/openid-configuration`, { signal });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const code = codeOfCause(error) ?? '';
    // Only ENOTFOUND proves that the setting is wrong. EAI_AGAIN means that the name server is down.
    if (code === 'ENOTFOUND')
      throw new WrongSetting(
        'the host of ACCESS_SERVICE_URL does not exist; check it',
        { reason: code },
        { mayPass: true },
      );
    if (untrusted.test(code))
      throw new WrongSetting('the identity provider has no trusted TLS; check ACCESS_SERVICE_URL and the CAs', {
        reason: code,
      });
    throw error;
  }
}
