// Finds the client's address and the host and protocol that it used. Like Express, it reads only those X-Forwarded-* headers
// that trusted proxies wrote.
import type { IncomingMessage } from 'node:http';
import { addressOf } from './client-address.ts';
import { createTrust, type TrustedProxies } from './trusted-proxies.ts';

export interface Forwarded {
  /** The client's address without port; `unknown` if a trusted proxy wrote something that is not an address. */
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

/** Returns the rightmost address of X-Forwarded-For that does not belong to a trusted proxy. */
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

/** Returns the first value of a header, or undefined if the nearest proxy is not trusted. */
function fromProxy({ headers, socket }: IncomingMessage, name: string, trust: Trust): string | undefined {
  const value = headers[name];
  if (value === undefined || !trust(socket.remoteAddress ?? '', 0)) return undefined;
  return String(value).split(',')[0]?.trim() || undefined;
}
