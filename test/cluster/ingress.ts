// Lets tests reach the cluster's ingress by host names that are not in the DNS, at the address of INGRESS_URL. If the
// ingress is on this machine, tests can choose their client address.
import { lookup as systemLookup } from 'node:dns';
import { type AddressInfo, connect, createServer, type LookupFunction } from 'node:net';
import { Agent, setGlobalDispatcher } from 'undici';

/** All host names under this domain lead to the ingress. */
const domain = '.formgate.test';

function ingressUrl(): URL {
  return new URL(process.env.INGRESS_URL || 'http://127.0.0.1:8000');
}

/**
 * Returns the origin of `host` at the ingress, as a browser would write it: `http://<host>:<port>`, without the port if
 * it is the default port.
 */
export function ingressOrigin(host: string): string {
  const { protocol, port } = ingressUrl();
  return `${protocol}//${host}${port === '' ? '' : `:${port}`}`;
}

/** Returns the host name and port of the ingress. */
export function ingressAddress(): { hostname: string; port: string } {
  const { hostname, port, protocol } = ingressUrl();
  return { hostname, port: port || (protocol === 'https:' ? '443' : '80') };
}

const lookup: LookupFunction = (name, options, callback) => {
  if (!name.endsWith(domain)) return systemLookup(name, options, callback);
  return systemLookup(ingressUrl().hostname, options, callback);
};

/** Makes fetch in this process reach the ingress by host names under `domain`. */
export function reachIngress(): void {
  setGlobalDispatcher(new Agent({ connect: { lookup } }));
}

/** Returns options for fetch that use another source address of this machine, such as 127.0.0.2. */
export function clientAt(localAddress: string): Agent {
  return new Agent({ localAddress, connect: { lookup, localAddress } });
}

export interface Passage {
  /** URL at which pods reach the ingress. */
  url: string;
  close(): Promise<void>;
}

/**
 * Makes the ingress reachable for pods, which cannot reach a server that listens on loopback. Pods use POD_INGRESS_URL
 * or, without it, an additional port on the address of the node, which must be this machine.
 */
export async function openPassage(nodeAddress: string): Promise<Passage> {
  if (process.env.POD_INGRESS_URL) return { url: process.env.POD_INGRESS_URL, close: async () => undefined };
  return passTo(ingressUrl(), nodeAddress);
}

/**
 * Listens on a free port of the node's address, and forwards connections to a server of this machine. The returned URL
 * has the path of `target`.
 */
export async function passTo(target: URL, nodeAddress: string): Promise<Passage> {
  const server = createServer((socket) => {
    const inner = connect(Number(target.port || 80), target.hostname);
    socket.on('error', () => inner.destroy());
    inner.on('error', () => socket.destroy());
    socket.pipe(inner).pipe(socket);
  });
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, nodeAddress, done));
  const { port } = server.address() as AddressInfo;
  const path = target.pathname.replace(/\/$/, '');
  return {
    url: `${target.protocol}//${nodeAddress}:${port}${path}`,
    close: () => new Promise((done) => server.close(() => done())),
  };
}
