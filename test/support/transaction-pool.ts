// A proxy in front of Postgres that pools transactions as PgBouncer does. Each transaction runs on the free server
// connection that has been idle longest, so session state does not carry over from one transaction to the next. The
// proxy refuses the startup parameters that PgBouncer refuses, and asks clients for no password.
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import pg from 'pg';
import { listenOnLoopback } from './loopback-server.ts';

export interface TransactionPool {
  /** `127.0.0.1:<port>`, to replace the host of a connection string. */
  host: string;
  /** The text of every statement so far. */
  statements: string[];
  /** Names of prepared statements that outlive their transaction. */
  prepared: string[];
  /** Number of transactions that ran on a different server connection than the client's previous transaction. */
  switches(): number;
  close(): Promise<void>;
}

interface ServerConnection {
  socket: Socket;
  client: ClientConnection | undefined;
}

interface ClientConnection {
  socket: Socket;
  server: ServerConnection | undefined;
  /** The server connection of the client's previous transaction. */
  last?: ServerConnection;
  /** Messages received while the client waits for a server connection. */
  waiting: Buffer[];
  /** Number of responses that the client still expects. */
  outstanding: number;
}

/** Starts the proxy. It opens at most `size` server connections for each database. */
export async function startTransactionPool(upstream: string, size = 4): Promise<TransactionPool> {
  const pools = new Map<string, ReturnType<typeof createServers>>();
  const sockets = new Set<Socket>();
  const seen = { statements: [] as string[], prepared: [] as string[], switches: 0 };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    void readStartup(socket).then((database) => {
      if (database === undefined) return;
      const pool = pools.get(database) ?? createServers(databaseOf(upstream, database), size, seen);
      pools.set(database, pool);
      pool.admit(socket);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    host: `127.0.0.1:${port}`,
    statements: seen.statements,
    prepared: seen.prepared,
    switches: () => seen.switches,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all([...pools.values()].map((pool) => pool.close()));
    },
  };
}

function databaseOf(upstream: string, database: string): string {
  const url = new URL(upstream);
  url.pathname = `/${database}`;
  return url.href;
}

const allowedParameters = new Set(['user', 'database', 'client_encoding', 'application_name', 'datestyle', 'timezone']);

/** Responds to a client's startup. Returns the database that it names, or undefined if the startup was refused. */
async function readStartup(socket: Socket): Promise<string | undefined> {
  for (;;) {
    const [packet] = (await once(socket, 'data')) as [Buffer];
    const code = packet.readInt32BE(4);
    if (code === 80_877_103) {
      socket.write('N');
      continue;
    }
    if (code !== 196_608) return void socket.destroy();
    const texts = packet.subarray(8).toString('utf8').split('\0');
    const parameters = new Map<string, string>();
    for (let index = 0; texts[index]; index += 2) parameters.set(texts[index] ?? '', texts[index + 1] ?? '');
    const refused = [...parameters.keys()].filter((name) => !allowedParameters.has(name.toLowerCase()));
    if (refused.length > 0)
      return void socket.end(message('E', `SFATAL\0C08P01\0Munsupported startup parameter: ${refused.join()}\0\0`));
    const hello = [message('R', '\0\0\0\0'), message('S', 'client_encoding\0UTF8\0'), message('K', '\0'.repeat(8))];
    socket.write(Buffer.concat([...hello, message('Z', 'I')]));
    return parameters.get('database') ?? parameters.get('user');
  }
}

function message(type: string, content: string): Buffer {
  const body = Buffer.from(content);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

function createServers(
  url: string,
  size: number,
  seen: { statements: string[]; prepared: string[]; switches: number },
) {
  const all = new Set<ServerConnection>();
  const idle: ServerConnection[] = [];
  const queue: ClientConnection[] = [];
  let opening = 0;
  let isClosed = false;

  function serve(client: ClientConnection, server: ServerConnection): void {
    if (client.last && client.last !== server) seen.switches += 1;
    client.last = server;
    client.server = server;
    server.client = client;
    server.socket.write(Buffer.concat(client.waiting.splice(0)));
  }

  function release(server: ServerConnection): void {
    if (server.client) server.client.server = undefined;
    server.client = undefined;
    const next = queue.shift();
    if (next) serve(next, server);
    else idle.push(server);
  }

  function drop(server: ServerConnection): void {
    all.delete(server);
    if (idle.includes(server)) idle.splice(idle.indexOf(server), 1);
    server.socket.destroy();
    server.client?.socket.destroy();
    openIfWanted();
  }

  /**
   * Opens a server connection if clients wait for one and the limit permits it. Disconnects the waiting clients if the
   * server cannot be reached.
   */
  function openIfWanted(): void {
    if (isClosed || queue.length === 0 || all.size + opening >= size) return;
    opening += 1;
    void open().catch(() => {
      for (const client of queue.splice(0)) client.socket.destroy();
    });
  }

  async function open(): Promise<void> {
    const socket = new Socket();
    const connecting = new pg.Client({ connectionString: url, stream: () => socket });
    try {
      await connecting.connect();
    } finally {
      opening -= 1;
    }
    // From here on this file reads the socket; the library was only needed to sign in.
    socket.removeAllListeners();
    const server: ServerConnection = { socket, client: undefined };
    all.add(server);
    socket.on('error', () => undefined).once('close', () => drop(server));
    socket.on(
      'data',
      createReader((type, packet) => {
        const { client } = server;
        // Drops messages that arrive while no client uses this connection, such as notifications.
        if (!client) return;
        client.socket.write(packet);
        if (type !== 'Z') return;
        client.outstanding -= 1;
        if (client.outstanding === 0 && packet.toString('latin1', 5) === 'I') release(server);
      }),
    );
    release(server);
  }

  function admit(socket: Socket): void {
    const client: ClientConnection = { socket, server: undefined, waiting: [], outstanding: 0 };
    socket.on(
      'data',
      createReader((type, packet) => {
        if (type === 'X') return void socket.end();
        const texts = packet.subarray(5).toString('utf8').split('\0');
        if (type === 'Q') seen.statements.push(texts[0] ?? '');
        if (type === 'P') seen.statements.push(texts[1] ?? '');
        if (type === 'P' && texts[0]) seen.prepared.push(texts[0]);
        if (type === 'Q' || type === 'S') client.outstanding += 1;
        if (client.server) return void client.server.socket.write(packet);
        client.waiting.push(packet);
        if (client.waiting.length > 1) return;
        const free = idle.shift();
        if (free) return serve(client, free);
        queue.push(client);
        openIfWanted();
      }),
    );
    socket.once('close', () => {
      if (queue.includes(client)) queue.splice(queue.indexOf(client), 1);
      if (client.server) drop(client.server);
    });
  }

  return {
    admit,
    async close() {
      isClosed = true;
      for (const server of all) drop(server);
    },
  };
}

/** Splits a stream into the protocol's messages. Each has a type, a length and its content. */
function createReader(handle: (type: string, packet: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const length = rest.length < 5 ? Number.POSITIVE_INFINITY : rest.readInt32BE(1) + 1;
      if (rest.length < length) return;
      const packet = rest.subarray(0, length);
      rest = rest.subarray(length);
      handle(String.fromCharCode(packet[0] ?? 0), packet);
    }
  };
}
