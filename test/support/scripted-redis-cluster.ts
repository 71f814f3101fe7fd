// Two Redis nodes that a test scripts, for a fault that a real Cluster cannot cause on demand: the primary is cut off
// from the other node, but not from its clients. The nodes store only texts, and support only the commands that a
// connection of Formgate uses.
import { createServer, type Server, type Socket } from 'node:net';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

export interface ScriptedNode {
  host: string;
  port: number;
  /** The stored values, keyed by Redis key. */
  values: Map<string, string>;
}

export interface ScriptedCluster {
  /** Serves all slots at first. */
  primary: ScriptedNode;
  /** Becomes the primary when `primary` is cut off. */
  replica: ScriptedNode;
  /**
   * Cuts the primary off from the replica. The primary then refuses all commands with keys. It still describes the
   * cluster as before, unless it has lost its configuration. In that case, it describes a cluster without nodes.
   */
  cutOff(lost?: 'contact' | 'configuration'): void;
  close(): Promise<void>;
}

const lastSlot = 16_383;
const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const array = (items: string[]) => `*${items.length}\r\n${items.join('')}`;

/** Starts the nodes. If `deniesInfo` is true, an ACL denies CLUSTER INFO. */
export async function startScriptedCluster({ deniesInfo = false } = {}): Promise<ScriptedCluster> {
  let isCutOff = false;
  let isEmpty = false;
  const servers: Server[] = [];
  const sockets = new Set<Socket>();

  async function startNode(isPrimary: boolean): Promise<ScriptedNode> {
    const values = new Map<string, string>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
      let unread = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        unread += chunk;
        for (let read = readCommand(unread); read; read = readCommand(unread)) {
          unread = unread.slice(read.length);
          socket.write(reply(isPrimary, values, read.args));
        }
      });
    });
    servers.push(server);
    return { host: '127.0.0.1', port: await listenOnLoopback(server), values };
  }

  function reply(
    isPrimary: boolean,
    values: Map<string, string>,
    [name = '', first = '', value = '']: string[],
  ): string {
    const command = `${name} ${first}`.toUpperCase();
    if (command === 'CLUSTER SLOTS' && isPrimary && isEmpty) return array([]);
    if (command === 'CLUSTER SLOTS') return slotsOf(isPrimary || !isCutOff ? nodes.primary : nodes.replica);
    if (command === 'CLUSTER INFO' && deniesInfo)
      return "-NOPERM this user has no permissions to run the 'cluster|info' command\r\n";
    if (command === 'CLUSTER INFO') return bulk(`cluster_state:${isPrimary && isCutOff ? 'fail' : 'ok'}\r\n`);
    if (name === 'HELLO') return first === '3' ? `%1\r\n${bulk('server')}${bulk('redis')}` : array([]);
    if (name === 'PING') return '+PONG\r\n';
    if (name !== 'GET' && name !== 'SET') return '+OK\r\n';
    if (isPrimary && isCutOff) return '-CLUSTERDOWN The cluster is down\r\n';
    if (!isPrimary && !isCutOff) return `-MOVED 0 127.0.0.1:${nodes.primary.port}\r\n`;
    if (name === 'SET') values.set(first, value);
    return name === 'SET' ? '+OK\r\n' : bulk(values.get(first) ?? '');
  }

  const nodes = { primary: await startNode(true), replica: await startNode(false) };
  return {
    ...nodes,
    cutOff(lost = 'contact') {
      isCutOff = true;
      isEmpty = lost === 'configuration';
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => closeServer(server)));
    },
  };
}

function slotsOf({ port }: ScriptedNode): string {
  return array([
    array([':0\r\n', `:${lastSlot}\r\n`, array([bulk('127.0.0.1'), `:${port}\r\n`, bulk('a'.repeat(40))])]),
  ]);
}

/** Returns the first command of a text in RESP, and its length; undefined if the text has no complete command. */
function readCommand(text: string): { args: string[]; length: number } | undefined {
  const count = /^\*(\d+)\r\n/.exec(text);
  if (!count) return undefined;
  const args: string[] = [];
  let [{ length }] = count;
  for (let left = Number(count[1]); left > 0; left -= 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(length, length + 20));
    if (!size) return undefined;
    const begin = length + size[0].length;
    length = begin + Number(size[1]) + 2;
    if (text.length < length) return undefined;
    args.push(text.slice(begin, length - 2));
  }
  return { args, length };
}
