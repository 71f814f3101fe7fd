// Decides on access for all routes of a single form: finds the form in the caller's tenant, and gets the caller's role
// on the form from the policy. For an intake application, two statements of the data routes check the policy themselves
// (decision 0019).
import type { Request, Response } from 'express';
import type { Caller } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, tenantOf } from '../../service/http/request-context.ts';
import { normalCode } from '../codes/code.ts';
import type { FormDefinition } from '../definitions/definition.ts';
import type { DefinitionSource } from '../definitions/source.ts';
import type { Action, FormRole } from './catalogue.ts';
import { type Form, parseIfMatch } from './form.ts';
import { decide, intakeRole, needsDefinition, refuseDeleted } from './policy.ts';
import { formParams } from './schema.ts';
import type { FormKey, FormStore } from './store.ts';

/** The requested form and the caller. */
export interface FormRequest extends FormKey {
  caller: Caller;
}

/** A form, and the role in which the caller performs the action. */
export interface Authorized {
  form: Form;
  role: FormRole;
}

declare global {
  namespace Express {
    interface Locals {
      /** The form and the role that a guard found before the body was read. */
      authorized?: Authorized;
    }
  }
}

export type FormAccess = ReturnType<typeof createFormAccess>;

/** Milliseconds for which requests for a deleted form get 410. */
const tombstonePeriod = 30 * 24 * 60 * 60 * 1000;

export function createFormAccess(options: {
  forms: Pick<FormStore, 'find' | 'findTombstone'>;
  definitions: DefinitionSource;
  clock: Clock;
}) {
  const { forms, definitions, clock } = options;

  return {
    /**
     * Returns the form and the caller's role. Throws Problem `not-found` (also for another tenant's form), `gone` for a
     * deleted form, or `forbidden`. If only the form's status prevents the action, throws `form-locked` or
     * `form-not-draft`. For `read-data`, throws `forbidden` instead of `form-not-draft`.
     */
    async authorize(action: Action, request: FormRequest): Promise<Authorized> {
      const { caller, tenantId } = request;
      const form = await forms.find(request);
      const since = new Date(clock().getTime() - tombstonePeriod);
      const found = form ?? (await forms.findTombstone(request, since));
      if (!found) throw new Problem('not-found', 'There is no such form.');
      const definition = needsDefinition(action, caller, found)
        ? await definitions.find(tenantId, found.definitionId, { permission: true })
        : undefined;
      if (!form) throw refuseDeleted(action, caller, found, definition);
      return { form, role: decide(action, caller, form, definition) };
    },

    /** Returns the definition that a creation request names. Throws Problem `not-found`. */
    async namedDefinition(tenantId: string, id: string): Promise<FormDefinition> {
      const definition = await definitions.find(tenantId, id, { permission: true, isChosen: true });
      if (definition) return definition;
      throw new Problem('not-found', 'There is no such form definition.');
    },

    /** Returns the definition that validates the form's data. Throws `conflict` if it is no longer configured. */
    async definitionOf({ tenantId, definitionId }: Form): Promise<FormDefinition> {
      const definition = await definitions.find(tenantId, definitionId, { permission: false });
      if (definition) return definition;
      throw new Problem('conflict', 'The definition of this form does not exist any more.');
    },
  };
}

export function formRequestOf(response: Response, formId: string): FormRequest {
  return { caller: callerOf(response), tenantId: tenantOf(response).id, formId };
}

/** The Problem for a request that repeatedly lost a race against changes of the form. */
export function keepsChanging(): Problem {
  return new Problem('conflict', 'Other requests keep changing the form. Try again.');
}

/**
 * Returns the normalised code from the header X-Form-Code, or from the query if the header is missing or empty. Returns
 * undefined if there is no code in either.
 */
export function codeOf(request: Request, inQuery: string | undefined): string | undefined {
  const code = normalCode(request.get('x-form-code') ?? '') || normalCode(inQuery ?? '');
  if (code.length > 64) throw invalidRequest([{ pointer: '/headers/x-form-code', detail: 'is too long' }]);
  return code === '' ? undefined : code;
}

/**
 * A guard that admits only callers who may change the data of the form in the path. It runs before the body is read,
 * because reading and parsing a body costs more than the decision. It lets intake applications pass without a query,
 * because the statement that saves checks the policy for them (decision 0019).
 */
export function mayUpdateData(access: FormAccess): Guard {
  return {
    name: 'mayUpdateData',
    check(request, response) {
      // This path is synchronous, because saves of intake applications are the most frequent requests.
      if (callerOf(response).roles.has(intakeRole)) return;
      const { success, data } = formParams.safeParse(request.params);
      if (!success) throw invalidRequest([{ pointer: '/params/formId', detail: 'must be a UUID' }]);
      return access.authorize('update-data', formRequestOf(response, data.formId)).then((authorized) => {
        response.locals.authorized = authorized;
      });
    },
  };
}

/**
 * Returns the revisions that the request's If-Match allows; undefined means any revision. Throws Problem
 * `invalid-request`.
 */
export function revisionsOf(request: { get(name: 'if-match'): string | undefined }): string[] | undefined {
  const revisions = parseIfMatch(request.get('if-match'));
  if (revisions !== null) return revisions;
  throw invalidRequest([{ pointer: '/headers/if-match', detail: 'must be entity tags' }]);
}

/** The Problem for a request whose If-Match excludes the current revision. */
export function stale(): Problem {
  return new Problem('stale', 'The form data has changed since it was read.');
}
