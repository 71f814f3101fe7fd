// How tests reach the cluster's ingress: by host names that no DNS knows, at the address of INGRESS_URL, and from a
// client address of their choosing where the ingress is on this machine.
import { lookup as systemLookup } from 'node:dns';
import { type AddressInfo, connect, createServer, type LookupFunction } from 'node:net';
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

export interface Passage {
  /** Where pods reach the ingress. */
  url: string;
  close(): Promise<void>;
}

/**
 * For pods, which may not see an ingress that listens on this machine only: the same ingress at POD_INGRESS_URL, or at a
 * port of its own on the address of the node, which this machine then is.
 */
export async function openPassage(nodeAddress: string): Promise<Passage> {
  if (process.env.POD_INGRESS_URL) return { url: process.env.POD_INGRESS_URL, close: async () => undefined };
  const { hostname, port } = ingressUrl();
  const server = createServer((socket) => {
    const inner = connect(Number(port || 80), hostname);
    socket.on('error', () => inner.destroy());
    inner.on('error', () => socket.destroy());
    socket.pipe(inner).pipe(socket);
  });
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, nodeAddress, done));
  const url = `http://${nodeAddress}:${(server.address() as AddressInfo).port}`;
  return { url, close: () => new Promise((done) => server.close(() => done())) };
}
