// Reads the session cookie that express-session signed, without express-session. It returns the handle of the session and
// never the id that the cookie holds.
import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isSameText } from '../../service/same-text.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { handleOf } from './records.ts';

export interface SessionCookie {
  name: string;
  /** For express-session, which signs with the first and accepts all. */
  secrets: string[];
  /** The handle of the header's session; undefined without a validly signed cookie. */
  handleOf(cookieHeader: string | undefined): string | undefined;
}

export function createSessionCookie(name: string, keys: KeyRing): SessionCookie {
  const secrets = keys.hmacs(name, 'session cookie');
  const known = new LRUCache<string, string>({ max: 10_000 });
  return {
    name,
    secrets,
    handleOf(header) {
      const value = header === undefined ? undefined : cookieValue(header, name);
      if (value === undefined) return undefined;
      const found = known.get(value);
      if (found !== undefined) return found;
      const id = unsign(value, secrets);
      if (id === undefined) return undefined;
      const handle = handleOf(id);
      known.set(value, handle);
      return handle;
    },
  };
}

/**
 * Undefined also if the name occurs twice with different values: another host of the domain set one of them, and the
 * header does not say which (RFC 6265 section 8.6).
 */
export function cookieValue(header: string, name: string): string | undefined {
  let value: string | undefined;
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    const next = pair.slice(equals + 1).trim();
    if (value !== undefined && value !== next) return undefined;
    value = next;
  }
  return value;
}

// As cookie-signature writes it: `s:<id>.<HMAC-SHA-256 in base64 without padding>`, percent-encoded.
function unsign(value: string, secrets: string[]): string | undefined {
  const text = decode(value);
  const dot = text.lastIndexOf('.');
  if (!text.startsWith('s:') || dot < 0) return undefined;
  const id = text.slice(2, dot);
  const given = text.slice(dot + 1);
  const isSigned = secrets.some((secret) =>
    isSameText(createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, ''), given),
  );
  return isSigned ? id : undefined;
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}
