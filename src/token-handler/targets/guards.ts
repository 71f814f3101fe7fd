// The guards of target requests that are theirs alone: how many an address, and how many a session may make.
import type { Response } from 'express';
import { LRUCache } from 'lru-cache';
import type { Guard } from '../../service/http-app.ts';
import { Problem } from '../../service/problem.ts';
import { addressOf, networkOf } from '../../service/rate-limit.ts';
import { addOwnHeader } from '../../service/request-context.ts';
import { sessionOf } from '../sessions/guards.ts';
import type { RequestCounter } from './limit.ts';

declare global {
  namespace Express {
    interface Locals {
      /** Of the client, as trusted proxies tell. */
      clientAddress?: string;
    }
  }
}

/** 429 for an address, or an IPv6 network, with more requests than it may make. */
export function addressLimit(counter: RequestCounter): Guard {
  const places = new LRUCache<string, { address: string; network: string }>({ max: 5_000 });
  return {
    name: `requestLimit(${counter.name})`,
    check(request, response) {
      // Most requests that come directly need no look into lists of proxies.
      const isDirect = request.headers['x-forwarded-for'] === undefined;
      const written = (isDirect ? request.socket.remoteAddress : request.ip) ?? '';
      let known = places.get(written);
      if (!known) {
        const address = addressOf(written);
        known = { address: address ?? 'unknown', network: networkOf(written) };
        // What is no address may be of any length.
        if (address !== undefined) places.set(written, known);
      }
      response.locals.clientAddress = known.address;
      apply(counter, known.network, response);
    },
  };
}

/** 429 for a session with more requests than it may make. Only behind `liveSession`. */
export function sessionLimit(counter: RequestCounter): Guard {
  return {
    name: `requestLimit(${counter.name})`,
    check(_request, response) {
      apply(counter, sessionOf(response).session.handle, response);
    },
  };
}

/** The headers of draft-ietf-httpapi-ratelimit-headers-07, of the limit that was looked at last. */
function apply(counter: RequestCounter, key: string, response: Response): void {
  const { isAllowed, remaining, reset } = counter.count(key);
  const seconds = counter.window / 1_000;
  addOwnHeader(response, 'RateLimit-Policy', `${counter.most};w=${seconds}`);
  addOwnHeader(response, 'RateLimit', `limit=${counter.most}, remaining=${remaining}, reset=${reset}`);
  if (isAllowed) return;
  const headers = { 'Retry-After': String(reset) };
  throw new Problem('too-many-requests', `More than ${counter.most} requests in ${seconds} s.`, { headers });
}
