// Fails a test file that leaves a connection, a server, a timer or a child process open, or a replaced global function.
// The test files of a worker share one process. Therefore, the check compares what is open after a file with what was
// open when the file began.
import { ChildProcess } from 'node:child_process';
import { Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, type RunnerTask, vi } from 'vitest';

/** Milliseconds for closing sockets and processes to finish, and for one-shot timers to fire. */
const patience = 20_000;
/**
 * Set on `process` once a test or this check has failed in this worker. Later files are then not checked, because they
 * would be blamed for leaks of an earlier file.
 */
const disturbed = Symbol.for('formgate: a test failed in this worker');

/** Names of global functions that tests replace. */
const replaceable = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'Date'];
/** The key on `process` of these functions as the first file of this worker found them, keyed by name. */
const originalsKey = Symbol.for('formgate: original functions');
if (!Reflect.has(process, originalsKey))
  Reflect.set(
    process,
    originalsKey,
    Object.fromEntries(replaceable.map((name) => [name, Reflect.get(globalThis, name)])),
  );
const originals: Record<string, unknown> = Reflect.get(process, originalsKey);

let kindsBefore: Map<string, number>;
let handlesBefore: WeakSet<object>;
/** The file whose tests run. Undefined if no test has run, as after a failed beforeAll. */
let file: RunnerTask | undefined;
beforeAll(() => {
  kindsBefore = openKinds();
  handlesBefore = new WeakSet(openHandles());
  file = undefined;
});
beforeEach(({ task }) => {
  file = task.file;
});

/**
 * A spy of a fake timer that is not restored before the real timers return would put the fake timer back when a later
 * file restores all spies. All waits of the worker would then last for ever.
 */
afterAll(() => {
  vi.restoreAllMocks();
  const replaced = replaceable.filter((name) => Reflect.get(globalThis, name) !== originals[name]);
  Object.assign(globalThis, originals);
  expect(replaced, 'replaced by this file').toEqual([]);
});

afterAll(async () => {
  if (!file || hasFailed(file)) Reflect.set(process, disturbed, true);
  if (Reflect.has(process, disturbed)) return;
  for (const deadline = Date.now() + patience; leakedKinds().length > 0 && Date.now() < deadline; ) await delay(50);
  const kinds = leakedKinds();
  if (kinds.length > 0) Reflect.set(process, disturbed, true);
  expect(kinds.length > 0 ? [...kinds, ...leakedHandles()] : [], 'left open by this file').toEqual([]);
});

function hasFailed(task: RunnerTask): boolean {
  const { state, retryCount = 0 } = task.result ?? {};
  return state === 'fail' || retryCount > 0 || (task.type === 'suite' && task.tasks.some(hasFailed));
}

function leakedKinds(): string[] {
  return [...openKinds()].flatMap(([kind, count]) => {
    const more = count - (kindsBefore.get(kind) ?? 0);
    return more > 0 ? [`${more} of ${kind}`] : [];
  });
}

/**
 * Returns the number of resources that keep the process alive, keyed by kind. Node names the kinds after its internal
 * classes.
 */
function openKinds(): Map<string, number> {
  // Ignores pipes. The pipes of a child process need no count, because the child process is counted. All other pipes
  // are this worker's own output, which is opened at its first use.
  const kinds = process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap');
  return new Map([...new Set(kinds)].map((kind) => [kind, kinds.filter((each) => each === kind).length]));
}

/**
 * Returns the open handles, such as sockets. Uses an undocumented function of Node, because no other function returns
 * addresses and process ids.
 */
function openHandles(): object[] {
  return (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles();
}

function leakedHandles(): string[] {
  return openHandles().flatMap((handle) => {
    if (handlesBefore.has(handle)) return [];
    if (handle instanceof ChildProcess) return [`process ${handle.pid}: ${handle.spawnargs.join(' ')}`];
    if (handle instanceof Server) return [`server at ${JSON.stringify(handle.address())}`];
    return handle instanceof Socket ? [describeSocket(handle)] : [];
  });
}

function describeSocket(socket: Socket): string {
  const { localAddress, localPort, remoteAddress, remotePort, bytesRead, bytesWritten } = socket;
  const side = 'server' in socket && socket.server ? 'accepted' : 'opened';
  const states = {
    connecting: socket.connecting,
    destroyed: socket.destroyed,
    paused: socket.isPaused(),
    ended: socket.readableEnded,
    finished: socket.writableFinished,
  };
  const state = Object.entries(states).flatMap(([name, holds]) => (holds ? [name] : []));
  return (
    `socket ${localAddress}:${localPort} ${side} with ${remoteAddress}:${remotePort}, ` +
    `read ${bytesRead} bytes, wrote ${bytesWritten}${state.length > 0 ? `, ${state.join(', ')}` : ''}`
  );
}
