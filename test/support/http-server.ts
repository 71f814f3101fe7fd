// Creates the HTTP servers that stand in for other services. They keep idle connections open for 65 s. With Node's
// default of 5 s, a server could close a connection just when a client sends the next request on it.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';

export function createHttpServer(handle: RequestListener, options: ServerOptions = {}): Server {
  return createServer({ keepAliveTimeout: 65_000, ...options }, handle);
}
