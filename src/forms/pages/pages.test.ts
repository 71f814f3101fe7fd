// Tests the delivery of the static pages over real HTTP. Other tests run the pages in a browser.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { ConfigError } from '../../service/operations/config.ts';
import { requirePages } from './built-pages.ts';
import { pageRoutes } from './routes.ts';

const directory = mkdtempSync(join(tmpdir(), 'formgate-pages-'));
const script = 'export const answer = 42;\n'.repeat(50);
let app: ListeningApp;

beforeAll(async () => {
  mkdirSync(join(directory, 'apply/assets'), { recursive: true });
  const write = (name: string, content: string | Buffer) => writeFileSync(join(directory, 'apply', name), content);
  write('index.html', '<!doctype html><title>Apply</title>');
  write('assets/index-a1.js', script);
  write('assets/index-a1.js.br', brotliCompressSync(script));
  write('assets/index-a1.js.gz', gzipSync(script));
  app = await startApp(pageRoutes({ pages: ['apply'], directory }));
});

afterAll(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

/** Requests a file. Does not use `fetch`, because `fetch` decompresses the body and so hides its encoding. */
function read(path: string, encoding = 'identity', since = '') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    get(
      `${app.url}${path}`,
      { headers: { 'Accept-Encoding': encoding, 'If-Modified-Since': since } },
      async (response) => {
        const chunks = await response.toArray();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      },
    ).on('error', reject);
  });
}

describe('a page', () => {
  it.each(['/apply', '/apply/demo/business-licence'])(
    'is served at %s, with revalidation and a strict Content-Security-Policy',
    async (path) => {
      const { status, headers, body } = await read(path);
      expect({ status, body: body.toString() }).toEqual({ status: 200, body: '<!doctype html><title>Apply</title>' });
      expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(headers['content-security-policy']).not.toMatch(/unsafe|nonce|sha256|\*/);
      const again = await read(path, 'identity', String(headers['last-modified']));
      expect(again.status).toBe(304);
    },
  );

  it.each(['/apply/', '/console', '/apply/a/b/c', '/apply/assets', '/apply/index.html.br'])(
    'is not served at %s',
    async (path) => {
      const { status } = await read(path);
      expect([status, path]).toEqual([path === '/apply/' ? 200 : 404, path]);
    },
  );
});

describe('a script of a page', () => {
  it.each([
    ['br', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
    ['gzip, deflate, br;q=0.9, zstd', 'gzip', gunzipSync],
    ['deflate', undefined, (body: Buffer) => body],
    ['br;q=0', undefined, (body: Buffer) => body],
  ] as const)('is sent to a client that accepts %s with the coding %s', async (accepted, coding, decode) => {
    const { headers, body } = await read('/apply/assets/index-a1.js', accepted);
    expect(headers['content-encoding']).toBe(coding);
    expect(decode(body).toString()).toBe(script);
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
  });

  it.each([
    'index-b2.js',
    '..%2Findex.html',
    '%2e%2e%2f%2e%2e%2fsecret.js',
    '.hidden.js',
    'index-a1.js.br',
    'index-a1.js%00.js',
  ])('is not found by the name %s', async (name) => {
    expect((await read(`/apply/assets/${name}`, 'br')).status).toBeOneOf([400, 404]);
  });
});

test('a page that was not built stops the start', () => {
  expect(() => requirePages(['apply'], directory)).not.toThrow();
  expect(() => requirePages(['apply', 'console'], directory)).toThrow(ConfigError);
  expect(() => requirePages(['apply', 'console'], directory)).toThrow('PAGES: console must be built first');
});

test('a page that cannot be read stops the start with the reason', () => {
  expect(() => requirePages(['apply'], join(directory, 'apply', 'index.html'))).toThrow(
    /PAGES: apply cannot be read \(ENOTDIR: /,
  );
});
