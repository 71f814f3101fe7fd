// Tests a real nginx in front of the token handler with two configurations: the one in docs/frontends.md, and the
// location that ingress-nginx generates from the annotations of the chart's preset.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Listening, listen } from '../../dev/listen.ts';
import { findFreePort } from '../../dev/ports.ts';
import { startTestNginx, type TestNginx } from '../support/nginx.ts';

const root = join(import.meta.dirname, '../..');
const guide = readFileSync(join(root, 'docs/frontends.md'), 'utf8');
const template = readFileSync(join(root, 'charts/formgate/templates/ingress.yaml'), 'utf8');

let upstream: Listening;
let nginx: TestNginx;
let port: number;
beforeEach(async () => {
  port = await findFreePort();
  upstream = await listen(echo);
});
afterEach(async () => {
  await nginx.close();
  await upstream.close();
});

/** Responds with the request as it arrived, and with the number of bytes of its body. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  request.on('end', () => response.end(JSON.stringify({ url: request.url, headers: request.headers, bytes })));
}

interface Echoed {
  url: string;
  headers: Record<string, string>;
  bytes: number;
}

async function ask(path: string, init?: RequestInit): Promise<Echoed> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  expect(response.status).toBe(200);
  return JSON.parse(await response.text());
}

const start = async (configuration: string) => {
  nginx = await startTestNginx(configuration, `http://127.0.0.1:${port}/token-handler/`);
};

describe('the nginx of docs/frontends.md', () => {
  beforeEach(async () => {
    const after = guide.slice(guide.indexOf('### nginx'));
    const [, block = ''] = /```nginx\n([\s\S]*?)```/.exec(after) ?? [];
    expect(block).toContain('listen 8081;');
    const own = block
      .replace('listen 8081;', `listen 127.0.0.1:${port};`)
      .replace('formgate-token-handler.formgate.svc:8080', `127.0.0.1:${upstream.port}`);
    await start(own);
  });

  it('forwards paths of the token handler under /v1, with the host and the address of the client', async () => {
    const { url, headers } = await ask('/token-handler/targets/forms/a%20b?c=d', {
      headers: {
        'X-Forwarded-For': '192.0.2.1',
        'X-Forwarded-Host': 'evil.example',
        'X-Request-Id': 'chosen-by-the-browser',
        'X-PLATFORM-TENANT': 'another',
      },
    });
    expect(headers['x-forwarded-host']).toBe(`127.0.0.1:${port}`);
    expect(headers['x-request-id']).toMatch(/^[0-9a-f]{32}$/);
    expect(url).toBe('/token-handler/v1/targets/forms/a%20b?c=d');
    expect(headers).toMatchObject({ host: `127.0.0.1:${port}`, 'x-forwarded-proto': 'http' });
    // The X-Forwarded-For and tenant headers that the client sent do not reach the token handler.
    expect(headers['x-forwarded-for']).toBe('127.0.0.1');
    expect(headers['x-platform-tenant']).toBeUndefined();
  });

  it('forwards bodies that are larger than nginx allows by default', async () => {
    const body = new Uint8Array(3_000_000);
    expect(await ask('/token-handler/targets/files/x', { method: 'PUT', body })).toMatchObject({ bytes: body.length });
  });
});

describe('the preset nginx of the chart', () => {
  /** Returns the location block that ingress-nginx generates from the annotations of the preset. */
  function location(): string {
    const annotation = (name: string) => {
      const [, value = ''] = new RegExp(`"nginx\\.ingress\\.kubernetes\\.io/${name}" "([^"]*)"`).exec(template) ?? [];
      expect(value, name).not.toBe('');
      return value;
    };
    const [, path = ''] = /"path" "(\/token-handler\([^"]*)"/.exec(template) ?? [];
    expect(path).not.toBe('');
    return `location ~* "^${path}" {
      rewrite "(?i)${path}" ${annotation('rewrite-target')} break;
      client_max_body_size ${annotation('proxy-body-size')};
      proxy_request_buffering ${annotation('proxy-request-buffering')};
      proxy_buffering ${annotation('proxy-buffering')};
      proxy_buffer_size ${annotation('proxy-buffer-size')};
      proxy_buffers 4 ${annotation('proxy-buffer-size')};
      proxy_read_timeout ${annotation('proxy-read-timeout')}s;
      proxy_send_timeout ${annotation('proxy-send-timeout')}s;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_pass http://127.0.0.1:${upstream.port};
    }`;
  }
  beforeEach(() => start(`server { listen 127.0.0.1:${port}; ${location()} }`));

  it.each([
    ['/token-handler/sessions', '/token-handler/v1/sessions'],
    ['/token-handler/v1/sessions', '/token-handler/v1/sessions'],
    ['/token-handler/clients/a/auth?tenant=demo&x=%2F', '/token-handler/v1/clients/a/auth?tenant=demo&x=%2F'],
    ['/token-handler/v1', '/token-handler/v1/'],
    ['/token-handler/v1x/y', '/token-handler/v1/v1x/y'],
  ])('forwards %s as %s', async (path, expected) => {
    expect((await ask(path)).url).toBe(expected);
  });

  it('forwards bodies that are larger than nginx allows by default', async () => {
    const body = new Uint8Array(3_000_000);
    expect(await ask('/token-handler/targets/files/x', { method: 'PUT', body })).toMatchObject({ bytes: body.length });
  });
});
