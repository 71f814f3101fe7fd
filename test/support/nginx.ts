// Starts the system's nginx with a configuration of the `http` context, on ports that the configuration names.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endWithThisProcess, failedStart, hasEnded, keepErrors } from './child-processes.ts';

export interface TestNginx {
  close(): Promise<void>;
}

/**
 * Starts nginx, and polls `url` until nginx responds. Throws with the message of `nginx -t` if nginx refuses the
 * configuration.
 */
export async function startTestNginx(configuration: string, url: string): Promise<TestNginx> {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-nginx-'));
  const file = join(folder, 'nginx.conf');
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const http = `access_log off; ${paths.join(' ')} ${configuration}`;
  writeFileSync(file, `daemon off; pid ${folder}/pid; events {} http { ${http} }`);
  const common = ['-p', folder, '-e', 'stderr', '-c', file];
  execFileSync('nginx', ['-t', '-q', ...common]);
  const child = spawn('nginx', common, { stdio: ['ignore', 'ignore', 'pipe'] });
  endWithThisProcess(child, 'SIGTERM');
  const errors = keepErrors(child);
  const exit = once(child, 'exit');
  for (const deadline = performance.now() + 60_000; !(await isUp(url)); await delay(50))
    if (hasEnded(child) || performance.now() > deadline) throw failedStart('nginx server', child, errors());
  return {
    async close() {
      child.kill('SIGTERM');
      await exit;
      rmSync(folder, { recursive: true });
    },
  };
}

const isUp = (url: string) =>
  fetch(url, { redirect: 'manual' }).then(
    () => true,
    () => false,
  );
