// Tests which requests the CSRF protection rejects.
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { csrfToken } from './cookies.ts';
import { checkCsrf } from './guards.ts';

const session = { handle: 'a handle', csrfSecret: 'a secret', site: 'https://app.example.org' };
const token = csrfToken(session);

const check = (method: string, headers: Record<string, string> = {}) => {
  const request = new IncomingMessage(new Socket());
  request.method = method;
  Object.assign(request.headers, headers);
  try {
    checkCsrf(request, session);
    return 'passes';
  } catch (error) {
    return (error as { status?: number }).status;
  }
};

describe('CSRF protection', () => {
  it('requires no token for GET', () => {
    expect(check('GET')).toBe('passes');
    expect(check('GET', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).toBe('passes');
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'QUERY'])(
    'requires the session’s token for %s',
    (method) => {
      expect(check(method)).toBe(403);
      expect(check(method, { 'x-xsrf-token': '' })).toBe(403);
      expect(check(method, { 'x-xsrf-token': 'undefined' })).toBe(403);
      expect(check(method, { 'x-xsrf-token': `${token} ` })).toBe(403);
      expect(check(method, { 'x-xsrf-token': token })).toBe('passes');
    },
  );

  it('rejects the token of another session or secret', () => {
    expect(check('POST', { 'x-xsrf-token': csrfToken({ ...session, handle: 'another' }) })).toBe(403);
    expect(check('POST', { 'x-xsrf-token': csrfToken({ ...session, csrfSecret: 'another' }) })).toBe(403);
  });

  it('rejects a request that the browser marks as cross-site, even with the token', () => {
    const right = { 'x-xsrf-token': token };
    expect(check('POST', { ...right, 'sec-fetch-site': 'cross-site' })).toBe(403);
    for (const site of ['same-origin', 'same-site', 'none'])
      expect(check('POST', { ...right, 'sec-fetch-site': site })).toBe('passes');
  });

  it('rejects an Origin other than the session’s site, even with the token', () => {
    const right = { 'x-xsrf-token': token };
    for (const origin of ['https://evil.example', 'http://app.example.org', 'https://app.example.org:444', 'null', ''])
      expect(check('POST', { ...right, origin })).toBe(403);
    expect(check('POST', { ...right, origin: session.site })).toBe('passes');
  });

  it('rejects an Origin of the same length that differs in one character', () => {
    const { site } = session;
    for (let index = 0; index < site.length; index += 1) {
      const origin = `${site.slice(0, index)}${site[index] === 'x' ? 'y' : 'x'}${site.slice(index + 1)}`;
      expect([origin, check('POST', { 'x-xsrf-token': token, origin })]).toEqual([origin, 403]);
      expect(check('GET', { upgrade: 'websocket', origin })).toBe(403);
    }
    expect(check('POST', { 'x-xsrf-token': token, origin: site.toUpperCase() })).toBe(403);
  });

  it('rejects an upgrade from another site, and requires no token for others', () => {
    const upgrade = { upgrade: 'websocket', connection: 'Upgrade' };
    expect(check('GET', upgrade)).toBe('passes');
    expect(check('GET', { ...upgrade, origin: session.site })).toBe('passes');
    expect(check('GET', { ...upgrade, origin: 'https://evil.example' })).toBe(403);
    expect(check('GET', { ...upgrade, 'sec-fetch-site': 'cross-site' })).toBe(403);
  });
});
