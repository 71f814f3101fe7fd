// Mounts the file system of an image that buildah built, and runs its processes by chroot, to test the image without a
// cluster. Needs root.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../dev/ports.ts';
import { attempt, type Outcome, run } from './commands.ts';

const buildah = { BUILDAH_ISOLATION: 'chroot', STORAGE_DRIVER: process.env.STORAGE_DRIVER || 'overlay' };

export interface ImageConfig {
  User: string;
  ExposedPorts: Record<string, object>;
  Env: string[];
  Entrypoint: string[];
  WorkingDir: string;
  Labels: Record<string, string>;
}

export interface ImageFolder {
  path: string;
  config: ImageConfig;
  /** Runs a command of the image until it ends. */
  command(args: string[], env?: Record<string, string>): Promise<Outcome>;
  /** Returns the milliseconds that a Node process takes for a fixed workload similar to the start of a service. */
  timeOfWork(): Promise<number>;
  /** Starts a service, returns the milliseconds until it is ready, and ends it. */
  timeToReady(command: string, env: Record<string, string>): Promise<number>;
  close(): Promise<void>;
}

export async function openImage(image: string): Promise<ImageFolder> {
  const container = (await run('buildah', ['from', '--pull-never', image], { env: buildah })).trim();
  const path = (await run('buildah', ['mount', container], { env: buildah })).trim();
  const inspected = await run('buildah', ['inspect', '--type', 'image', image], { env: buildah });
  const { OCIv1 }: { OCIv1: { config: ImageConfig } } = JSON.parse(inspected);
  const { config } = OCIv1;
  const chroot = [`--userspec=${config.User}`, path, ...config.Entrypoint];
  const own = Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/s) as [string, string]));
  return {
    path,
    config,
    command: (args, env = {}) => attempt('/usr/sbin/chroot', [...chroot, ...args], { env: { ...own, ...env } }),
    timeOfWork: async () => {
      const started = performance.now();
      await attempt('/usr/sbin/chroot', [path, '/nodejs/bin/node', '--eval', `(${work})()`]);
      return performance.now() - started;
    },
    timeToReady: async (command, env) => {
      const [port, metricsPort] = [await findFreePort(), await findFreePort()];
      const ports = { HOST: '127.0.0.1', PORT: String(port), METRICS_PORT: String(metricsPort) };
      const started = performance.now();
      const child = spawn('/usr/sbin/chroot', [...chroot, command], {
        env: { ...own, ...env, ...ports },
        stdio: 'ignore',
      });
      try {
        await becomeReady(child, `http://127.0.0.1:${metricsPort}/readyz`);
        return performance.now() - started;
      } finally {
        const exit = new Promise((done) => child.once('exit', done));
        if (child.exitCode === null && child.kill('SIGKILL')) await exit;
      }
    },
    close: async () => {
      await run('buildah', ['umount', container], { env: buildah });
      await run('buildah', ['rm', container], { env: buildah });
    },
  };
}

/** The work of `timeOfWork`. A process of the image runs the text of this function. */
function work(): void {
  const items = Array.from({ length: 3_000 }, (_, n) => ({ n, name: `name ${n}`, list: [n, n + 1] }));
  const text = JSON.stringify(items);
  for (let round = 0; round < 40; round += 1) JSON.parse(text).sort((a: { n: number }, b: { n: number }) => b.n - a.n);
  const code = 'list.push(list.length * 2);'.repeat(100);
  for (let round = 0; round < 300; round += 1) new Function('list', `${code} // ${round}`)([]);
}

async function becomeReady(child: ChildProcess, url: string): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await delay(5)) {
    const isReady = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    if (child.exitCode !== null) throw new Error(`The process ended with ${child.exitCode}.`);
  }
  throw new Error('The process was not ready within 30 s.');
}
