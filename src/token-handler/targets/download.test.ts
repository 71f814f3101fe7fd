// Tests how a response body is sent, and how many of its bytes count as read by the client.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { describe, expect, it } from 'vitest';
import { Download } from './bodies.ts';

/** Creates a download to a simulated response, and functions with which a test controls the response. */
function start(length?: string) {
  const calls: unknown[][] = [];
  const socket: { _handle: { writeQueueSize?: number } | null } = { _handle: { writeQueueSize: 0 } };
  const state = { accepts: true };
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    socket: socket as typeof socket | null,
    write(...args: unknown[]) {
      calls.push(['write', ...args]);
      return state.accepts;
    },
    end: (...args: unknown[]) => void calls.push(['end', ...args]),
  });
  const controller = {
    pause: () => void calls.push(['pause']),
    resume: () => void calls.push(['resume']),
  } as unknown as Dispatcher.DispatchController;
  const download = new Download(response as unknown as ServerResponse, length);
  return {
    ...{ calls, state, download, response },
    write: (chunk: Buffer) => download.write(chunk, controller),
    /**
     * Sets the numbers of unsent bytes: `queued` in Node's buffer, and `sending` of the current chunk in libuv's queue.
     * Returns the number of bytes that count as read by the client.
     */
    look(queued: number, sending: number) {
      response.writableLength = queued;
      socket._handle = { writeQueueSize: sending };
      download.look();
      return download.passed;
    },
    socket,
  };
}
const chunk = (bytes: number) => Buffer.alloc(bytes, 0xe9);

describe('a response body', () => {
  it('is passed on chunk by chunk, and the last chunk ends the response', () => {
    const { calls, write, download } = start('6');
    const [first, last] = [chunk(4), chunk(2)];
    expect([download.isOpen, write(first), download.isOpen]).toEqual([true, true, true]);
    expect([write(last), download.isOpen]).toEqual([true, false]);
    expect(calls).toEqual([
      ['write', first],
      ['end', last.toString('latin1'), 'latin1'],
    ]);
  });

  it.each([
    [8_192, 'a text, which Node sends together with the head'],
    [8_193, 'a buffer, which is not copied'],
  ])('of %i bytes is sent as %s', (bytes) => {
    const { calls, write } = start(String(bytes));
    const whole = chunk(bytes);
    write(whole);
    expect(calls).toEqual([bytes <= 8_192 ? ['end', whole.toString('latin1'), 'latin1'] : ['end', whole]]);
  });

  it('of unknown length is open until the upstream ends it', () => {
    const { calls, write, download } = start();
    write(chunk(4));
    expect([download.isOpen, calls.map(([name]) => name)]).toEqual([true, ['write']]);
  });

  it('without content is complete at once', () => {
    expect(start('0').download.isOpen).toBe(false);
  });

  it('pauses the upstream until the client has read', () => {
    const { calls, state, write, response } = start();
    state.accepts = false;
    expect(write(chunk(1))).toBe(false);
    expect(calls.map(([name]) => name)).toEqual(['write', 'pause']);
    response.emit('drain');
    response.emit('drain');
    expect(calls.map(([name]) => name)).toEqual(['write', 'pause', 'resume']);
  });

  it('waits for the client while something is in the buffer', () => {
    const { download, look } = start();
    expect(download.isWaiting).toBe(false);
    look(1, 0);
    expect(download.isWaiting).toBe(true);
  });
});

describe('the bytes that a client has read', () => {
  it('are those of whole chunks, and of the chunk that is being sent', () => {
    const { write, look } = start();
    write(chunk(100));
    write(chunk(50));
    expect(look(150, 100)).toBe(0);
    expect(look(150, 70)).toBe(30);
    expect(look(150, 70)).toBe(30);
    expect(look(150, 10)).toBe(90);
    // The first chunk was sent completely. Its bytes count only once.
    expect(look(50, 50)).toBe(100);
    expect(look(50, 20)).toBe(130);
    expect(look(0, 0)).toBe(150);
    expect(look(0, 0)).toBe(150);
  });

  it('are not counted again when a further chunk fills the queue', () => {
    const { write, look } = start();
    write(chunk(100));
    expect(look(100, 100)).toBe(0);
    expect(look(100, 40)).toBe(60);
    write(chunk(1_000));
    expect(look(1_100, 1_040)).toBe(60);
    expect(look(1_100, 1_000)).toBe(100);
  });

  it('never decrease, even if more of a chunk was counted than it had', () => {
    const { write, look } = start();
    write(chunk(100));
    write(chunk(10));
    expect(look(110, 110)).toBe(0);
    expect(look(110, 5)).toBe(105);
    expect(look(10, 10)).toBe(105);
    expect(look(0, 0)).toBe(115);
  });

  it('are counted in whole chunks if the connection does not report the size of its queue', () => {
    const { write, look, socket, response, download } = start();
    write(chunk(100));
    for (const handle of [null, {}]) {
      response.writableLength = 100;
      socket._handle = handle;
      download.look();
      expect(download.passed).toBe(0);
    }
    response.socket = null;
    response.writableLength = 0;
    download.look();
    expect(download.passed).toBe(100);
    expect(look(0, 0)).toBe(100);
  });
});
