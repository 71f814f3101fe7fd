// Tests names of registers that try to address another resource. They must be rejected, or used literally.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { roleToken } from '../../../test/support/platform.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import {
  listPages,
  type RegisterBackend,
  type Replica,
  startRegisterBackend,
} from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let api: Replica;
let calls: string[];
let closeProxy: () => Promise<void>;

beforeAll(async () => {
  backend = await startRegisterBackend();
  const { origin, pathname } = new URL(backend.configurationUrl);
  const proxy = await startFaultProxy(origin);
  calls = proxy.calls;
  closeProxy = proxy.close;
  api = await backend.start({ configurationUrl: `${proxy.url}${pathname}` });
});

afterAll(async () => {
  await closeProxy();
  await backend.close();
});

const bad: [string, string][] = [
  ['two dots', '..'],
  ['one dot', '.'],
  ['a path up', '../x'],
  ['a path up to the definitions', '../platform/configuration-service'],
  ['a backslash path up', '..\\x'],
  ['encoded dots', '%2e%2e'],
  ['encoded dots and slash', '%2e%2e%2fx'],
  ['a slash', 'a/b'],
  ['an encoded slash', 'a%2fb'],
  ['a colon', 'a:b'],
  ['the key of another definition', 'data-register:x'],
  ['a question mark', 'a?core=true'],
  ['a hash', 'a#b'],
  ['a semicolon', 'a;b'],
  ['a dotted path', 'a.configurationSchema'],
  ['an emoji', '🍁'],
  ['51 characters', 'a'.repeat(51)],
  ['a trailing no-break space', 'a\u00a0'],
  ['a trailing space', 'a '],
  ['a leading space', ' a'],
  ['a newline', 'a\n'],
  ['nothing', ''],
  ['spaces only', '  '],
  ['a letter that is not ASCII', 'Québec'],
  ['a full-width letter', '\uff41'],
  ['a combining accent', 'e\u0301'],
  ['a right-to-left override', 'a\u202eb'],
  ['a zero-width joiner', 'a\u200db'],
];

describe('An invalid name', () => {
  it.each(bad)('400 on create: %s; the configuration service is not called', async (_what, name) => {
    calls.length = 0;
    const response = await api.request('POST', '', { body: { name, description: 'x' } });
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ errors: [{ pointer: '/name' }] });
    expect(calls).toEqual([]);
  });

  it.each(bad.filter(([, name]) => name !== ''))(
    '400 on GET, PATCH, DELETE and entries, percent-encoded: %s; the configuration service is not called',
    async (_what, name) => {
      calls.length = 0;
      // The request is sent over a socket, because fetch resolves dot segments, even those written as %2E.
      const encoded = encodeURIComponent(name).replaceAll('.', '%2E');
      for (const [method, path, body] of [
        ['GET', `/${encoded}`, undefined],
        ['PATCH', `/${encoded}`, { entries: [] }],
        ['DELETE', `/${encoded}`, undefined],
        ['GET', `/${encoded}/entries`, undefined],
      ] as const) {
        const { status } = await raw(method, path, body);
        expect(status, `${method} ${path}`).toBe(400);
      }
      expect(calls).toEqual([]);
    },
  );

  it('NUL and a lone surrogate are 400 in a body and in a path', async () => {
    calls.length = 0;
    for (const name of ['a\\u0000', 'a\\ud800'])
      expect((await api.request('POST', '', { body: `{"name":"${name}","description":""}` })).status).toBe(400);
    for (const path of ['/a%00', '/a%ED%A0%80', '/a%C0%AE', '/a%', '/a%zz'])
      expect((await raw('GET', path)).status, path).toBe(400);
    expect(calls).toEqual([]);
  });

  it('a path that leaves /registers is never a register: 404, or another known address', async () => {
    calls.length = 0;
    for (const path of ['/../x', '/../../v1/registers/..', '//x', '/x/y', '/x/../y', '/./x'])
      expect((await raw('GET', path)).status, path).toBe(404);
    expect(calls).toEqual([]);
  });
});

describe('A valid name that looks like something else', () => {
  const odd = [
    '__proto__',
    'constructor',
    'toString',
    'entries',
    'latest',
    'active',
    'platform',
    'a  b',
    '-',
    '_',
    '0',
  ];

  it.each(odd)('%s is taken literally by create, read, list, patch and delete', async (name) => {
    const path = `/${encodeURIComponent(name)}`;
    expect((await api.request('GET', path)).status).toBe(404);
    try {
      expect((await api.request('POST', '', { body: { name, description: 'odd', entries: ['a'] } })).status).toBe(201);
      expect((await api.request('GET', path)).body).toMatchObject({ name, description: 'odd', entries: ['a'] });
      expect(await listed()).toContain(name);
      const patched = await api.request('PATCH', path, { body: { entries: ['b'] } });
      expect(patched.body).toMatchObject({ name, entries: ['b'] });
      expect((await api.request('GET', `${path}/entries`)).body).toEqual(['b']);
    } finally {
      expect((await api.request('DELETE', path)).status).toBe(204);
    }
    expect(await listed()).not.toContain(name);
  });

  it('names are case sensitive: two that differ only in case are two registers', async () => {
    for (const name of ['Towns', 'towns'])
      expect((await api.request('POST', '', { body: { name, description: name } })).status).toBe(201);
    expect((await api.request('GET', '/Towns')).body).toMatchObject({ description: 'Towns' });
    expect((await api.request('DELETE', '/Towns')).status).toBe(204);
    expect((await api.request('GET', '/towns')).body).toMatchObject({ description: 'towns' });
    expect((await api.request('DELETE', '/towns')).status).toBe(204);
  });

  it('spaces inside a name may be sent as %20 and are stored unencoded', async () => {
    const name = 'Cities of the North';
    expect((await api.request('POST', '', { body: { name, description: '' } })).status).toBe(201);
    expect((await raw('GET', '/Cities%20of%20the%20North')).status).toBe(200);
    const { latest } = await backend.configuration.read('data-register', name, { tenantId: backend.tenant.id });
    expect(latest?.configuration).toEqual([]);
    expect((await api.request('DELETE', '/Cities%20of%20the%20North')).status).toBe(204);
  });
});

async function listed(): Promise<string[]> {
  return (await listPages(api)).flatMap(({ results }) => results.map(({ name }) => name));
}

/** Sends a request over a socket as an administrator. */
async function raw(method: string, path: string, body?: unknown): Promise<{ status: number }> {
  const token = await roleToken(backend.access, { 'form-service': ['form-admin'] }, { realm: 'demo' });
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method} /form/v1/registers${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    `Authorization: Bearer ${token}`,
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return sendRaw(Number(new URL(api.url).port), `${head.join('\r\n')}\r\n\r\n${text}`);
}
