// Tests how a request body is read: with back-pressure, and with a limited budget for reading ahead of the upstream.
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { outgoingBody, RequestBody } from './bodies.ts';

/** Returns a request whose body the test pushes. */
function incoming(headers: Record<string, string> = {}) {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return request;
}

/** Returns a read-ahead budget and buffers that record their calls. The budget always grants `step` bytes. */
function budgets(step = 100_000) {
  const noted: number[] = [];
  const taken: number[] = [];
  const returned: number[] = [];
  const readAhead = {
    take(held: number) {
      taken.push(held);
      return step;
    },
    giveBack: (bytes: number) => void returned.push(bytes),
  };
  return {
    bodies: { buffers: { note: (bytes: number) => void noted.push(bytes) }, readAhead },
    noted,
    taken,
    returned,
  };
}

function start(step?: number) {
  const source = incoming();
  const counts = budgets(step);
  return { source, body: new RequestBody(source, counts.bodies), ...counts };
}
const turn = () => new Promise(setImmediate);
const full = 65_536;

describe('a streamed body', () => {
  it('arrives as it was sent, and its bytes are counted', async () => {
    const { source, body, noted } = start();
    source.push('some ');
    source.push('bytes');
    source.push(null);
    expect(String(await buffer(body))).toBe('some bytes');
    expect([body.passed, noted]).toEqual([10, [5, 5]]);
  });

  it('is read from the client only as fast as the upstream reads', async () => {
    const { source, body } = start();
    source.push(Buffer.alloc(full - 1));
    await turn();
    expect(source.isPaused()).toBe(false);
    source.push(Buffer.alloc(1));
    await turn();
    expect([source.isPaused(), body.passed]).toEqual([true, full]);
    body.read();
    await turn();
    expect(source.isPaused()).toBe(false);
  });

  it('fails if the client aborts it, and does not end the process', async () => {
    const { source, body } = start();
    const failed = once(body, 'error');
    source.destroy();
    expect(String(await failed)).toContain('the client went away');
    // Without a listener for `error`, `emit` would throw.
    body.emit('error', new Error('again'));
  });

  it('that is complete is not aborted when the connection closes', async () => {
    const { source, body } = start();
    source.push(null);
    await turn();
    source.emit('close');
    expect([body.destroyed, body.errored]).toEqual([false, null]);
    expect(await buffer(body)).toHaveLength(0);
  });

  it('no longer listens to the client after it has ended', async () => {
    const { source, body } = start();
    const listeners = () => ['data', 'end', 'close'].map((name) => source.listenerCount(name));
    const before = listeners();
    body.destroy();
    await turn();
    expect(listeners()).toEqual(before.map((count) => count - 1));
    const failed = start();
    const reason = once(failed.body, 'error');
    failed.body.destroy(new Error('the upstream failed'));
    expect(String(await reason)).toContain('the upstream failed');
  });
});

describe('a body waits for its client', () => {
  it('if the upstream wants more, and the client has sent nothing', async () => {
    const { source, body } = start();
    await turn();
    expect(body.isWaiting).toBe(false);
    body.on('data', () => undefined);
    await turn();
    expect(body.isWaiting).toBe(true);
    body.pause();
    expect(body.isWaiting).toBe(false);
    body.resume();
    source.pause();
    expect(body.isWaiting).toBe(false);
    source.resume();
    await turn();
    expect(body.isWaiting).toBe(true);
    source.push(null);
    await turn();
    expect(body.isWaiting).toBe(false);
  });

  it('not while the upstream has data to read', async () => {
    const { source, body } = start();
    body.read();
    expect(body.isWaiting).toBe(true);
    source.push('some');
    await turn();
    expect(body.isWaiting).toBe(false);
  });
});

describe('a body that the upstream does not read', () => {
  /** Fills the body until the body no longer reads from the client. */
  async function stalled(step?: number) {
    const started = start(step);
    started.source.push(Buffer.alloc(full));
    await turn();
    expect(started.source.isPaused()).toBe(true);
    return started;
  }

  it('is read ahead from the second check on, within the budget', async () => {
    const { source, body, taken } = await stalled();
    body.look();
    expect([source.isPaused(), taken]).toEqual([true, []]);
    body.look();
    expect([source.isPaused(), taken]).toEqual([false, [0]]);
    // The budget of 100,000 bytes includes bytes that the upstream has not read yet.
    source.push(Buffer.alloc(100_000 - full - 1));
    await turn();
    expect(source.isPaused()).toBe(false);
    source.push(Buffer.alloc(1));
    await turn();
    expect(source.isPaused()).toBe(true);
    body.look();
    expect([source.isPaused(), taken]).toEqual([false, [0, 100_000]]);
  });

  it('is not read ahead once the budget is used up', async () => {
    const { source, body, taken } = await stalled(0);
    body.look();
    body.look();
    expect([source.isPaused(), taken]).toEqual([true, [0]]);
  });

  it('is not read ahead if the upstream has read something in the meantime', async () => {
    const { source, body, taken } = await stalled();
    body.look();
    body.read(10);
    source.pause();
    body.look();
    expect(taken).toEqual([]);
    body.look();
    expect(taken).toEqual([0]);
  });

  it('is not read ahead while the client is being read', async () => {
    const { body, taken } = start();
    body.look();
    body.look();
    expect(taken).toEqual([]);
  });

  it('returns its budget once when it is over', async () => {
    const { body, returned } = await stalled();
    body.look();
    body.look();
    body.destroy();
    await turn();
    body._destroy(null, () => undefined);
    expect(returned).toEqual([100_000, 0]);
  });
});

describe('the body for the upstream', () => {
  const bodyOf = (request: IncomingMessage) => outgoingBody(request, budgets().bodies);

  it('is absent if the request has neither a length nor a coding, or the length 0', () => {
    for (const headers of [{}, { 'content-length': '0' }, { 'content-length': '000' }])
      expect(bodyOf(incoming(headers as Record<string, string>))).toBeNull();
  });

  it.each(['chunked', ' Chunked '])('is streamed if its length is unknown: %j', (coding) => {
    expect(bodyOf(incoming({ 'transfer-encoding': coding }))).toBeInstanceOf(RequestBody);
    expect(bodyOf(incoming({ 'transfer-encoding': coding, 'content-length': '0' }))).toBeInstanceOf(RequestBody);
  });

  it.each(['gzip', 'gzip, chunked', ''])('is refused with the transfer coding %j', (coding) => {
    expect(() => bodyOf(incoming({ 'transfer-encoding': coding }))).toThrow(
      expect.objectContaining({ slug: 'invalid-request', status: 400 }),
    );
  });

  it('is one buffer if all of it has arrived, in however many pieces', () => {
    const whole = incoming({ 'content-length': '5' });
    whole.push('whole');
    expect(bodyOf(whole)).toEqual(Buffer.from('whole'));
    const pieces = incoming({ 'content-length': '9' });
    // After `resume`, each `read` returns one piece.
    pieces.resume();
    for (const piece of ['one', 'two', 'six']) pieces.push(piece);
    expect(bodyOf(pieces)).toEqual(Buffer.from('onetwosix'));
  });

  it('is streamed if a part of it is still to come', async () => {
    const request = incoming({ 'content-length': '5' });
    request.push('who');
    const body = bodyOf(request);
    request.push('le');
    request.push(null);
    expect(body).toBeInstanceOf(RequestBody);
    expect(String(await buffer(body as RequestBody))).toBe('whole');
  });
});
