// Opens the port of the gateway. If the port is in use, the error says how to choose another port.

import { UsageError } from '../src/service/operations/command-line.ts';
import { type Listening, listen } from './listen.ts';

/**
 * Listens on the gateway's port. `npm start` calls this function before it writes any data, so that it changes nothing
 * if the port is in use. Throws UsageError.
 */
export async function openGatewayPort(port: number, handle: Parameters<typeof listen>[0]): Promise<Listening> {
  return listen(handle, port).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      throw new UsageError(`Port ${port} is in use. Stop what uses it, or choose another: PORT=${port + 1} npm start`);
    if (error.code === 'EACCES')
      throw new UsageError(`This user may not open port ${port}. Choose one above 1023: PORT=8080 npm start`);
    throw error;
  });
}
