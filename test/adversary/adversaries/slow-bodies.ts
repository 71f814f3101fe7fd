// One person keeps connections to an upstream open, by slow uploads or by downloads that the person does not read.
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Adversary, Attack } from './adversary.ts';
import { open, targetHead, untilAborted } from './hostile-client.ts';

/** Number of connections: more than each replica opens to one upstream. */
const count = 260;

export const slowUploads: Adversary = {
  name: 'slow-uploads',
  about: `${count} uploads of one person to each token handler, at one byte per second`,
  run: (attack) =>
    hold(attack, (socket) => {
      socket.write(targetHead('POST', 'api/echo', person(attack), ['Content-Length: 1000000']));
      const timer = setInterval(() => socket.write('x'), 1_000);
      socket.once('close', () => clearInterval(timer));
    }),
};

export const unreadDownloads: Adversary = {
  name: 'unread-downloads',
  about: `${count} downloads of one person from each token handler, of 64 MiB, that are not read`,
  run: (attack) =>
    hold(attack, (socket) => {
      socket.write(targetHead('GET', `api/download?bytes=${64 * 1024 * 1024}`, person(attack)));
      socket.pause();
    }),
};

/** Returns one of the sessions of Mallory, the adversary in the honest tenant. */
const person = ({ addresses, random }: Attack) => random.pick(addresses.mallory);

async function hold({ addresses, signal }: Attack, begin: (socket: Socket) => void): Promise<void> {
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count && !signal.aborted; opened += 1) {
    for (const { url } of addresses.replicas['token-handler']) {
      const socket = open(url);
      begin(socket);
      sockets.push(socket);
    }
    if (opened % 20 === 0) await delay(5);
  }
  await untilAborted(signal);
  for (const socket of sockets) socket.destroy();
}
