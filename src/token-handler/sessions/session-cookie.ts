// Reads the session's cookie of a request: what express-session has signed, without express-session. It answers the
// public name of the session, and never what the cookie holds.
import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isSameText } from '../../service/same-text.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { handleOf } from './records.ts';

export interface SessionCookie {
  name: string;
  /** What express-session signs with: the first; and takes: any of them. */
  secrets: string[];
  /** The handle of the session that the header names; undefined without a cookie of ours. */
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
 * Undefined also for a name that comes twice with different values: one of them was set by another host of the domain,
 * and nothing says which (RFC 6265 section 8.6).
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
