// What the form routes read of a request beside its validated parts: who approaches which form, the code, If-Match.
import type { Request, Response } from 'express';
import type { Caller } from '../../service/auth/identity.ts';
import { invalidRequest } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import type { Approach } from './access.ts';
import { parseIfMatch } from './form.ts';

export function approachOf(response: Response, formId: string): Approach {
  return { caller: callerOf(response), tenantId: tenantOf(response).id, formId };
}

/** An account is known by its issuer and its subject together. */
export function accountOf({ issuer, subject }: Caller): { issuer: string; subject: string } {
  return { issuer, subject };
}

/** The header's code before the query's; undefined for none and for an empty one. */
export function codeOf(request: Request, inQuery: string | undefined): string | undefined {
  const code = (request.get('x-form-code') ?? inQuery ?? '').trim();
  if (code.length > 64) throw invalidRequest([{ pointer: '/headers/x-form-code', detail: 'is too long' }]);
  return code === '' ? undefined : code;
}

/** The revisions that If-Match allows, undefined for any. */
export function revisionsOf(request: Request): string[] | undefined {
  const revisions = parseIfMatch(request.get('if-match'));
  if (revisions !== null) return revisions;
  throw invalidRequest([{ pointer: '/headers/if-match', detail: 'must be entity tags' }]);
}
