// Finds the form of a request in the caller's tenant and asks the policy which role the caller has on it. Every route of
// a single form uses it, except two statements of the data routes whose conditions contain the policy of an intake
// application (decision 0019).
import type { Caller } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { FormDefinition } from '../definitions/definition.ts';
import type { DefinitionSource } from '../definitions/source.ts';
import type { Action, FormRole } from './catalogue.ts';
import type { Form } from './form.ts';
import { decide, decideDeleted, needsDefinition } from './policy.ts';
import type { FormStore } from './store.ts';

/** The caller, the tenant and the form of a request. */
export interface Approach {
  caller: Caller;
  tenantId: string;
  formId: string;
}

export interface Reached {
  form: Form;
  role: FormRole;
}

declare global {
  namespace Express {
    interface Locals {
      /** The form, and the caller's role on it, as a guard found them before the body was read. */
      reached?: Reached;
    }
  }
}

export interface FormAccess {
  /**
   * Throws Problem `not-found` (also for another tenant's form), `gone` for a deleted form, `forbidden`, or the conflict
   * of its status.
   */
  reach(action: Action, approach: Approach): Promise<Reached>;
  /** The form's definition, to validate form data with; a conflict if it is no longer configured. */
  definitionOf(form: Form): Promise<FormDefinition>;
}

/** Milliseconds for which a deleted form is remembered. */
const tombstonePeriod = 30 * 24 * 60 * 60 * 1000;

export function createFormAccess(options: {
  forms: FormStore;
  definitions: DefinitionSource;
  clock: Clock;
}): FormAccess {
  const { forms, definitions, clock } = options;
  const rolesOf = (tenantId: string, definitionId: string) =>
    definitions.find(tenantId, definitionId, { permission: true });

  async function missing(action: Action, { caller, tenantId, formId }: Approach): Promise<Problem> {
    const since = new Date(clock().getTime() - tombstonePeriod);
    const tombstone = await forms.findTombstone(tenantId, formId, since);
    if (!tombstone) return new Problem('not-found', 'There is no such form.');
    const asks = needsDefinition(action, caller, tombstone);
    const roles = asks ? await rolesOf(tenantId, tombstone.definitionId) : undefined;
    decideDeleted(action, caller, tombstone, roles);
    return new Problem('gone', 'The form was deleted.');
  }

  return {
    async reach(action, approach) {
      const { caller, tenantId, formId } = approach;
      const form = await forms.find(tenantId, formId);
      if (!form) throw await missing(action, approach);
      const roles = needsDefinition(action, caller, form) ? await rolesOf(tenantId, form.definitionId) : undefined;
      return { form, role: decide(action, caller, form, roles) };
    },
    async definitionOf({ tenantId, definitionId }) {
      const definition = await definitions.find(tenantId, definitionId, { permission: false });
      if (definition) return definition;
      throw new Problem('conflict', 'The definition of this form does not exist any more.');
    },
  };
}
