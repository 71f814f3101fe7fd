// One direction of a proxied connection. Passes on the bytes and the end of the stream, always in order, and with a
// delay and a limited rate if the conditions say so.
import type { Socket } from 'node:net';

export interface FlowConditions {
  /** Returns the milliseconds by which the next packet is delayed. */
  waits(): number;
  /** Returns the allowed bytes per second; undefined for no limit. */
  rate(): number | undefined;
  /** False while nothing may pass. */
  isOpen(): boolean;
}

export interface Flow {
  /** Must be called after the conditions have changed, so that waiting packets are reconsidered. */
  wake(): void;
}

/** A packet without bytes marks the end of the stream. */
interface Packet {
  bytes: Buffer | undefined;
  /** Time at which the packet is to be passed on, as `performance.now()` returns it. */
  due: number;
}

/** Number of waiting bytes above which the flow stops reading, as when the buffers of a network are full. */
const mostWaiting = 256 * 1024;
/** Largest number of bytes that pass together if the rate is limited. A small number keeps the rate even. */
const largestPiece = 4 * 1024;

export function createFlow(source: Socket, sink: Socket, conditions: FlowConditions): Flow {
  const packets: Packet[] = [];
  let waiting = 0;
  let timer: NodeJS.Timeout | undefined;
  let free = 0;

  function add(bytes: Buffer | undefined): void {
    const due = Math.max(performance.now() + conditions.waits(), packets.at(-1)?.due ?? 0);
    packets.push({ bytes, due });
    waiting += bytes?.length ?? 0;
    if (waiting > mostWaiting) source.pause();
    pass();
  }

  function pass(): void {
    while (!timer && conditions.isOpen() && !sink.destroyed) {
      const [packet] = packets;
      if (!packet) break;
      const wait = Math.max(packet.due, free) - performance.now();
      if (wait > 0) {
        later(wait);
        return;
      }
      send(packet);
    }
    if (waiting <= mostWaiting && source.isPaused()) source.resume();
  }

  function send(packet: Packet): void {
    const { bytes } = packet;
    const rate = conditions.rate();
    const piece = rate === undefined ? bytes : bytes?.subarray(0, largestPiece);
    if (piece && bytes && piece.length < bytes.length) packet.bytes = bytes.subarray(piece.length);
    else packets.shift();
    if (!piece) return void sink.end();
    waiting -= piece.length;
    sink.write(piece);
    if (rate !== undefined) free = performance.now() + (piece.length / rate) * 1_000;
  }

  function later(milliseconds: number): void {
    timer = setTimeout(() => {
      timer = undefined;
      pass();
    }, milliseconds);
  }

  source.on('data', add);
  source.once('end', () => add(undefined));
  sink.once('close', () => clearTimeout(timer));
  return {
    wake() {
      clearTimeout(timer);
      timer = undefined;
      pass();
    },
  };
}
