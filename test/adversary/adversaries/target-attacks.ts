// Attacks of a signed-in person through the proxy: paths that leave the base path, headers that claim an identity,
// hundreds of open streams, and a download that continues after the logout.
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { trickPaths } from '../../support/path-tricks.ts';
import { clientId, signIn } from '../world/sign-in.ts';
import { basePath, type Seen } from '../world/upstream.ts';
import type { Adversary } from './adversary.ts';
import { anyReplica, exchange, open, send, swarm, targetHead, untilAborted } from './hostile-client.ts';

/**
 * Paths that leave the base path if the upstream is lenient: after `..`, they have a character that best-fit mappings
 * of character sets turn into a backslash, or an encoded `?` or `#`.
 */
const escapes = ['/..%c2%a5', '/..%e2%82%a9', '/..%e2%83%a5', '/..%3f', '/..%23', '/a/..%3F/x', '/..%C2%A5x'];

export const pathAttacks: Adversary = {
  name: 'path-attacks',
  about: 'paths that lenient servers resolve outside of the base path',
  run: (attack) =>
    swarm(attack.signal, 6, async () => {
      const { addresses, random, complain } = attack;
      const isEscape = random.chance(0.3);
      const path = isEscape
        ? random.pick(escapes)
        : random.pick(trickPaths) + random.pick(['', '/x', random.pick(trickPaths)]);
      const head = targetHead('GET', `api${path}`, random.pick(addresses.mallory), ['Connection: close']);
      const text = await exchange(anyReplica(addresses, 'token-handler', random), head);
      const seen = seenBy(text);
      if (!seen) return;
      const { pathname } = new URL(seen.target, 'http://upstream');
      if (isEscape) complain(`the path ${path} reached the upstream as ${seen.target}`);
      else if (pathname !== basePath && !pathname.startsWith(`${basePath}/`))
        complain(`the path ${path} left the base path: ${seen.target}`);
    }),
};

const claims = [
  ...['X-Azure-ClientIP', 'X-Azure-SocketIP', 'Remote-User', 'X-Remote-User', 'X-Remote-Group', 'X-Auth-Request-User'],
  ...[
    'X-Auth-Request-Email',
    'X-Forwarded',
    'X-Forwarded-User',
    'X-Forwarded-Email',
    'X-Forwarded-Prefix',
    'Forwarded',
  ],
  ...[
    'X-Envoy-External-Address',
    'X-Envoy-Original-Path',
    'X-HTTP-Method-Override',
    'X-HTTP-Method',
    'X-Method-Override',
  ],
  ...['X-Original-URL', 'X-Rewrite-URL', 'X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP', 'Fastly-Client-IP'],
  ...['X-Client-IP', 'X-Cluster-Client-IP', 'X-Goog-Authenticated-User-Email', 'X-MS-Client-Principal', 'X-User-Id'],
];

export const headerClaims: Adversary = {
  name: 'header-claims',
  about: 'headers in which a client claims an identity, an address or another method',
  run: (attack) =>
    swarm(attack.signal, 4, async () => {
      const { addresses, random, complain } = attack;
      const mark = `forged-${random.word(6)}`;
      const cased = (name: string) => random.pick([name, name.toLowerCase(), name.toUpperCase()]);
      const chosen = random.shuffle(claims).slice(0, 8);
      const lines = [...chosen.map((name) => `${cased(name)}: ${mark}`), 'Connection: close'];
      const head = targetHead('GET', 'api/whoami', random.pick(addresses.mallory), lines);
      const seen = seenBy(await exchange(anyReplica(addresses, 'token-handler', random), head));
      for (const [index, value] of seen?.rawHeaders.entries() ?? [])
        if (value.includes(mark)) complain(`the header ${seen?.rawHeaders[index - 1]} reached the upstream as claimed`);
    }),
};

export const streamFloods: Adversary = {
  name: 'stream-floods',
  about: '200 event streams and WebSockets of one session at each token handler',
  async run({ addresses, random, signal }) {
    const [person] = addresses.mallory;
    const sockets: Socket[] = [];
    for (let count = 0; person && count < 200 && !signal.aborted; count += 1) {
      const socket = open(anyReplica(addresses, 'token-handler', random));
      const key = random.bytes(16).toString('base64');
      const upgrade = [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        `Sec-WebSocket-Key: ${key}`,
      ];
      const isEvents = random.chance(0.5);
      socket.write(targetHead('GET', isEvents ? 'api/events' : 'api/socket', person, isEvents ? [] : upgrade));
      if (random.chance(0.5)) socket.resume();
      sockets.push(socket);
      await delay(5);
    }
    await untilAborted(signal);
    for (const socket of sockets) socket.destroy();
  },
};

/** Milliseconds. The proxy ends the requests of an ended session within 2 s; a busy machine may need longer. */
const longestAfterLogout = 6_000;

export const downloadsAfterLogout: Adversary = {
  name: 'downloads-after-logout',
  about: 'a download of known length that continues after the logout',
  needsStores: true,
  async run({ addresses, complain }) {
    const site = addresses.fronts['token-handler'];
    // Signs a separate person in, so that other adversaries do not use up this person's share of the connections.
    const person = await signIn(site, 'erin@example.com');
    const socket = open(site);
    let received = 0;
    let head = '';
    let isSlow = true;
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (head.length < 15) head += chunk.toString('latin1');
      if (!isSlow) return;
      socket.pause();
      setTimeout(() => socket.resume(), 50);
    });
    socket.write(targetHead('GET', 'api/download?bytes=20000000000', person, ['Connection: close']));
    for (let waited = 0; received === 0 && waited < 3_000; waited += 50) await delay(50);
    const logout = `${site}/token-handler/v1/clients/${clientId}/logout`;
    const { status } = await send(logout, { headers: { cookie: person.cookie } });
    if (status !== 302) complain(`a logout got ${status}`);
    // Data that is already in buffers may still arrive.
    isSlow = false;
    const loggedOut = Date.now();
    // Wait even if the signal is aborted, because this attack checks the product's own time limit.
    while (!socket.destroyed && Date.now() - loggedOut < longestAfterLogout) await delay(50);
    if (!socket.destroyed && head.startsWith('HTTP/1.1 200'))
      complain(`a download continued for ${longestAfterLogout / 1_000} s after the logout`);
    else if (!socket.destroyed) complain(`a download got no response for ${longestAfterLogout / 1_000} s: ${head}`);
    socket.destroy();
  },
};

/**
 * Returns the request as the honest upstream saw it, parsed from the upstream's response. Returns undefined if the
 * request did not reach the upstream.
 */
function seenBy(text: string): Seen | undefined {
  if (!text.startsWith('HTTP/1.1 200')) return undefined;
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  try {
    const seen: Seen = JSON.parse(json);
    return typeof seen.target === 'string' ? seen : undefined;
  } catch {
    return undefined;
  }
}
