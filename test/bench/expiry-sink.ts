// A process that accepts every event and every subscription as fast as it can, and counts them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let count = 0;
const server = createServer((request, response) => {
  request.resume().once('end', () => {
    count += 1;
    const id = String(count).padStart(24, '0');
    const subscriber = { id, channels: [] };
    const body = request.url?.includes('/subscriptions')
      ? { subscriberId: id, typeId: 'form-status-updates', subscriber }
      : {};
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => process.send?.(count));
