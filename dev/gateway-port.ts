// Opens the port of the gateway. If the port is in use, the error says how to continue.
import { type Listening, listen } from './listen.ts';
import { UsageError } from './options.ts';

/**
 * `npm start` calls this function before it changes anything, so that a port in use causes no changes. Throws
 * UsageError.
 */
export async function listenAt(port: number, handle: Parameters<typeof listen>[0]): Promise<Listening> {
  return listen(handle, port).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      throw new UsageError(`Port ${port} is in use. Stop what uses it, or choose another: PORT=${port + 1} npm start`);
    if (error.code === 'EACCES')
      throw new UsageError(`This user may not open port ${port}. Choose one above 1023: PORT=8080 npm start`);
    throw error;
  });
}
