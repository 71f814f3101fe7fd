// Contender of the proxy bench: nginx as a plain reverse proxy with one worker, keep-alive connections and an access
// log.

import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findFreePort } from '../../dev/ports.ts';
import type { Contender } from './contender.ts';
import type { ProxySettings } from './plain-proxies.ts';

/** Starts nginx. Returns undefined if nginx is not installed. */
export async function startNginx(
  settings: Omit<ProxySettings, 'kind'>,
): Promise<(Contender & { url: string }) | undefined> {
  const run = promisify(execFile);
  const isThere = await run('nginx', ['-v']).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'formgate-nginx-'));
  const port = await findFreePort();
  await writeFile(join(folder, 'nginx.conf'), configuration(settings, folder, port));
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], { stdio: 'inherit' });
  const url = `http://127.0.0.1:${port}`;
  for (let waited = 0; !(await isUp(url)); waited += 50) {
    if (waited > 5_000) throw new Error('nginx does not respond');
    await delay(50);
  }
  const worker = Number((await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim().split(' ')[0]);
  return {
    name: 'nginx',
    url,
    cpuSeconds: () => cpuSecondsOf(worker),
    residentBytes: () => residentBytesOf(worker),
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function configuration(
  { upstreamUrl, prefix, connections }: Omit<ProxySettings, 'kind'>,
  folder: string,
  port: number,
) {
  return `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log warn;
events { worker_connections 4096; }
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000000;
  upstream up { server ${new URL(upstreamUrl).host}; keepalive ${connections}; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location ${prefix}/ {
      proxy_pass http://up/; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_set_header Cookie ""; proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`;
}

const isUp = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  );

/** Returns the CPU seconds of a process. Linux only: fields 14 (user) and 15 (system) of stat, in ticks of 10 ms. */
async function cpuSecondsOf(id: number): Promise<number> {
  const fields = (await readFile(`/proc/${id}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function residentBytesOf(id: number): Promise<number> {
  const text = await readFile(`/proc/${id}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) * 1_024;
}
