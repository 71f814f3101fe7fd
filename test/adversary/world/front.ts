// The front of one service: distributes TCP connections over its ready replicas, as a Kubernetes Service does. If no
// replica is ready, it closes the connection.
import { connect, createServer, type Socket } from 'node:net';
import { resetSocket } from '../../../src/service/http/reset-socket.ts';
import { listenOnLoopback } from '../../support/loopback-server.ts';

export interface Backend {
  port: number;
  metricsPort: number;
}

export interface Front {
  port: number;
}

const probeInterval = 500;
/** As with the chart's readiness probe, a replica gets no more connections after two consecutive failed probes. */
const failuresToLeave = 2;

export async function startFront(backends: Backend[]): Promise<Front> {
  const failures = new Map(backends.map((backend) => [backend, failuresToLeave]));
  let turn = 0;
  const ready = () => backends.filter((backend) => (failures.get(backend) ?? 0) < failuresToLeave);

  async function probe(backend: Backend): Promise<void> {
    const isReady = await fetch(`http://127.0.0.1:${backend.metricsPort}/readyz`, {
      signal: AbortSignal.timeout(1_000),
    }).then(
      ({ ok }) => ok,
      () => false,
    );
    failures.set(backend, isReady ? 0 : (failures.get(backend) ?? 0) + 1);
    setTimeout(() => void probe(backend), probeInterval);
  }

  const server = createServer({ noDelay: true }, (incoming) => {
    const candidates = ready();
    turn += 1;
    const first = turn % Math.max(candidates.length, 1);
    forward(incoming, [...candidates.slice(first), ...candidates.slice(0, first)]);
  });
  const port = await listenOnLoopback(server);
  for (const backend of backends) void probe(backend);
  return { port };
}

/** Connects to the first backend, or to the next one if the connection is refused. */
function forward(incoming: Socket, [backend, ...others]: Backend[]): void {
  if (!backend) return void resetSocket(incoming);
  const outgoing = connect({ port: backend.port, host: '127.0.0.1', noDelay: true });
  incoming.on('error', () => outgoing.destroy());
  const refused = () => forward(incoming, others);
  outgoing.once('error', refused);
  outgoing.once('connect', () => {
    outgoing.off('error', refused);
    outgoing.on('error', () => resetSocket(incoming));
    outgoing.once('close', () => incoming.destroy());
    incoming.once('close', () => outgoing.destroy());
    incoming.pipe(outgoing).pipe(incoming);
  });
}
