// Finds the client's address and the host and protocol that it used. Like Express, it reads only those X-Forwarded-* headers
// that trusted proxies wrote.
import type { IncomingMessage } from 'node:http';
import { addressOf } from './client-address.ts';
import { createTrust, type TrustedProxies } from './trusted-proxies.ts';

export interface Forwarded {
  /** Of the client, without port; `unknown` if a trusted proxy wrote something else. */
  address: string;
  host: string | undefined;
  protocol: string;
}

type Trust = ReturnType<typeof createTrust>;

export function createForwarded(proxies: TrustedProxies): (request: IncomingMessage) => Forwarded {
  const trust = createTrust(proxies);
  return (request) => {
    const { headers, socket } = request;
    const protocol = 'encrypted' in socket ? 'https' : 'http';
    return {
      address: addressOf(clientAddress(request, trust)) ?? 'unknown',
      host: fromProxy(request, 'x-forwarded-host', trust) ?? headers.host,
      protocol: fromProxy(request, 'x-forwarded-proto', trust) ?? protocol,
    };
  };
}

/** The first address from the right of X-Forwarded-For that is not a trusted proxy's. */
function clientAddress({ headers, socket }: IncomingMessage, trust: Trust): string {
  let address = socket.remoteAddress ?? '';
  const list = headers['x-forwarded-for'];
  if (list === undefined) return address;
  const written = String(list)
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  for (let hop = 0; written.length > 0 && trust(address, hop); hop += 1) address = written.pop() as string;
  return address;
}

/** The first value of a header, if the nearest proxy is trusted. */
function fromProxy({ headers, socket }: IncomingMessage, name: string, trust: Trust): string | undefined {
  const value = headers[name];
  if (value === undefined || !trust(socket.remoteAddress ?? '', 0)) return undefined;
  return String(value).split(',')[0]?.trim() || undefined;
}
