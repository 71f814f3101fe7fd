// How tests reach the cluster's ingress: by host names that no DNS knows, at the address of INGRESS_URL, and from a
// client address of their choosing where the ingress is on this machine.
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, setGlobalDispatcher } from 'undici';

/** Host names under this one lead to the ingress. */
const domain = '.formgate.test';

function ingressUrl(): URL {
  return new URL(process.env.INGRESS_URL || 'http://127.0.0.1:8000');
}

/** `http://<host>:<port>`, as a browser would write it. */
export function ingressOrigin(host: string): string {
  const { protocol, port } = ingressUrl();
  return `${protocol}//${host}${port === '' ? '' : `:${port}`}`;
}

const lookup: LookupFunction = (name, options, answer) => {
  if (!name.endsWith(domain)) return systemLookup(name, options, answer);
  return systemLookup(ingressUrl().hostname, options, answer);
};

/** From now on fetch reaches it in this process. */
export function reachIngress(): void {
  setGlobalDispatcher(new Agent({ connect: { lookup } }));
}

/** What fetch takes to come from another address of this machine, such as 127.0.0.2. */
export function clientAt(localAddress: string): Agent {
  return new Agent({ localAddress, connect: { lookup, localAddress } });
}
