// Tests a real nginx in front of the token handler with three configurations: the one in docs/frontends.md, and the
// locations that ingress-nginx generates from the annotations of the chart's preset, without and with the rewrite.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Listening, listen } from '../../dev/listen.ts';
import { findFreePort } from '../../dev/ports.ts';
import { startTestNginx, type TestNginx } from '../support/nginx.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';

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

/** Returns the configuration in docs/frontends.md, which forwards to `tokenHandler`. */
function configurationOfGuide(tokenHandler: number): string {
  const after = guide.slice(guide.indexOf('### nginx'));
  const [, block = ''] = /```nginx\n([\s\S]*?)```/.exec(after) ?? [];
  expect(block).toContain('listen 8081;');
  return block
    .replace('listen 8081;', `listen 127.0.0.1:${port};`)
    .replace('formgate-token-handler.formgate.svc:8080', `127.0.0.1:${tokenHandler}`);
}

describe('the nginx of docs/frontends.md', () => {
  beforeEach(() => start(configurationOfGuide(upstream.port)));

  it('forwards paths as the client wrote them, with the host and the address of the client', async () => {
    const { url, headers } = await ask('/token-handler/targets/forms/a%20b/%2e%2e%2Fc?d=%2F', {
      headers: {
        'X-Forwarded-For': '192.0.2.1',
        'X-Forwarded-Host': 'evil.example',
        'X-Request-Id': 'chosen-by-the-browser',
        'X-PLATFORM-TENANT': 'another',
      },
    });
    expect(headers['x-forwarded-host']).toBe(`127.0.0.1:${port}`);
    expect(headers['x-request-id']).toMatch(/^[0-9a-f]{32}$/);
    expect(url).toBe('/token-handler/targets/forms/a%20b/%2e%2e%2Fc?d=%2F');
    expect(headers).toMatchObject({ host: `127.0.0.1:${port}`, 'x-forwarded-proto': 'http' });
    // The X-Forwarded-For and tenant headers that the client sent do not reach the token handler.
    expect(headers['x-forwarded-for']).toBe('127.0.0.1');
    expect(headers['x-platform-tenant']).toBeUndefined();
  });
});

/** Returns the value that the chart's template gives to an annotation of ingress-nginx. */
function annotation(name: string): string {
  const [, value = ''] = new RegExp(`"nginx\\.ingress\\.kubernetes\\.io/${name}" "([^"]*)"`).exec(template) ?? [];
  expect(value, name).not.toBe('');
  return value;
}

/** Returns the directives that ingress-nginx generates in a location for `tokenHandler`. */
const directivesOfPreset = (tokenHandler: number) => `
  client_max_body_size ${annotation('proxy-body-size')};
  proxy_request_buffering ${annotation('proxy-request-buffering')};
  proxy_buffering ${annotation('proxy-buffering')};
  proxy_buffer_size ${annotation('proxy-buffer-size')};
  proxy_buffers 4 ${annotation('proxy-buffer-size')};
  proxy_read_timeout ${annotation('proxy-read-timeout')}s;
  proxy_send_timeout ${annotation('proxy-send-timeout')}s;
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_pass http://127.0.0.1:${tokenHandler};`;

/** Returns the configuration that ingress-nginx generates for the path /token-handler of type Prefix. */
const configurationOfPreset = (tokenHandler: number) =>
  `server { listen 127.0.0.1:${port}; location /token-handler/ { ${directivesOfPreset(tokenHandler)} } }`;

describe('the preset nginx of the chart with ingress.rewrite', () => {
  beforeEach(() => {
    const [, path = ''] = /"path" "(\/token-handler\([^"]*)"/.exec(template) ?? [];
    expect(path).not.toBe('');
    return start(`server {
      listen 127.0.0.1:${port};
      location ~* "^${path}" {
        rewrite "(?i)${path}" ${annotation('rewrite-target')} break;
        ${directivesOfPreset(upstream.port)}
      }
    }`);
  });

  it.each([
    ['/token-handler/sessions', '/token-handler/v1/sessions'],
    ['/token-handler/v1/sessions', '/token-handler/v1/sessions'],
    ['/token-handler/clients/a/auth?tenant=demo&x=%2F', '/token-handler/v1/clients/a/auth?tenant=demo&x=%2F'],
    ['/token-handler/v1', '/token-handler/v1/'],
    ['/token-handler/v1x/y', '/token-handler/v1/v1x/y'],
  ])('forwards %s as %s', async (path, expected) => {
    expect((await ask(path)).url).toBe(expected);
  });
});

describe.each([
  ['the nginx of docs/frontends.md', configurationOfGuide],
  ['the preset nginx of the chart', configurationOfPreset],
])('%s', (_name, configuration) => {
  it('forwards bodies that are larger than nginx allows by default', async () => {
    await start(configuration(upstream.port));
    const body = new Uint8Array(3_000_000);
    expect(await ask('/token-handler/targets/files/x', { method: 'PUT', body })).toMatchObject({ bytes: body.length });
  });

  it('forwards the redirect of a logout with a long ID token, and the cookie that it deletes', async () => {
    const location = `https://login.example.org/logout?id_token_hint=${'x'.repeat(8_000)}`;
    const redirecting = await listen((_request, response) => {
      response.writeHead(302, { Location: location, 'Set-Cookie': 'session=; Max-Age=0' }).end();
    });
    onTestFinished(() => redirecting.close());
    await start(configuration(redirecting.port));
    const response = await fetch(`http://127.0.0.1:${port}/token-handler/logout`, { redirect: 'manual' });
    expect([response.status, response.headers.get('location') === location]).toEqual([302, true]);
    expect(response.headers.getSetCookie()).toEqual(['session=; Max-Age=0']);
  });
});

describe('a person whose browser follows a crafted link', () => {
  let world: TargetWorld;
  beforeAll(async () => {
    world = await startTargetWorld();
    await world.direct('api:v1', `${world.upstream.url}/base/v1`);
    await world.direct('other', world.upstream.url);
  });
  afterAll(() => world?.close());

  describe.each([
    ['the nginx of docs/frontends.md', configurationOfGuide],
    ['the preset nginx of the chart', configurationOfPreset],
  ])('through %s', (_name, configuration) => {
    beforeEach(() => {
      world.upstream.forget();
      return start(configuration(Number(new URL(world.site).port)));
    });
    const send = (target: string) => world.send({ method: 'POST', target, url: `http://127.0.0.1:${port}` });

    it.each([
      '/token-handler/targets/api/a%2Fb',
      '/token-handler/targets/api/forms/..%2F..%2F..%2Fother/z',
      '/token-handler/v1/targets/api/forms/..%2F..%2F..%2Fother/z',
      '/token-handler/targets/api/%2e%2e/other/z',
    ])('no target gets the request %s', async (target) => {
      const { status, problem } = await send(target);
      const forwarded = world.upstream.seen.map((seen) => seen.target);
      expect([status, problem, forwarded]).toEqual([400, 'invalid-path', []]);
    });

    it.each(['/token-handler', '/token-handler/v1'])('a target below %s gets other requests', async (prefix) => {
      expect((await send(`${prefix}/targets/other/a%20b?c=%2F`)).status).toBe(200);
      expect(world.upstream.last().target).toBe('/a%20b?c=%2F');
    });
  });
});
