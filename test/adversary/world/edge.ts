// Runs the fronts of all services and the honest upstream in a separate thread, so that the main thread does not delay
// their traffic.
import { parentPort, workerData } from 'node:worker_threads';
import { type Backend, startFront } from './front.ts';
import type { Service } from './replica.ts';
import { startHonestUpstream } from './upstream.ts';

export type EdgePorts = Record<Service | 'upstream', number>;

const backends: Record<Service, Backend[]> = workerData;
const [forms, tokenHandler, platformServer, upstream] = await Promise.all([
  startFront(backends.forms),
  startFront(backends['token-handler']),
  startFront(backends['platform-server']),
  startHonestUpstream(),
]);
const ports: EdgePorts = {
  forms: forms.port,
  'token-handler': tokenHandler.port,
  'platform-server': platformServer.port,
  upstream,
};
parentPort?.postMessage(ports);
