// Registers the console's client for the demo tenant at the identity provider, so that people can sign in immediately.
// The token handler writes this client to the core configuration.
import { setTimeout as sleep } from 'node:timers/promises';
import { consoleId } from '../../src/service/clients/client-rules.ts';
import { sendJson } from './send-json.ts';

export interface ConsoleConnection {
  /** Base URL of the token handler. */
  url: string;
  /** Access token of an administrator of the tenant's clients. */
  token: string;
  /** Address of the gateway. */
  publicUrl: string;
}

/**
 * Registers the client. If it is already registered, replaces its redirect URI, because the port may have changed since
 * the last start. Waits until the token handler has written the client. Throws after 30 s, or if a request fails.
 */
export async function registerConsole({ url, token, publicUrl }: ConsoleConnection): Promise<void> {
  const callback = `${publicUrl}/token-handler/clients/${consoleId}/callback`;
  const send = async (method: string, body: object): Promise<number> => {
    const address = `${url}/token-handler/v1/clients/${consoleId}`;
    const { status, text } = await sendJson({ method, url: address, token, body });
    if (status < 300 || status === 404 || status === 409) return status;
    throw new Error(`The console's client was not registered: ${status} to ${method}: ${text}`);
  };
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(50)) {
    const updated = await send('PUT', { redirectUris: [callback] });
    if (updated === 200) return;
    if (updated === 404) continue;
    const body = { registrationToken: 'demo-registration-token', authCallbackUrl: callback };
    if ((await send('POST', body)) === 200) return;
  }
  throw new Error("The token handler has not written the console's client within 30 s.");
}
