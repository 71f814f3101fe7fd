// The guards of the routes for forms. `mayUpdateData` needs the form and still runs before the body is read, because
// reading and parsing a body costs more than the decision.
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import type { FormAccess } from './access.ts';
import { intakeRole } from './policy.ts';
import { approachOf } from './request.ts';
import { formParams } from './schema.ts';

export interface FormGuards {
  /** For tokens issued to this service. */
  bearer: Guard;
  tenant: Guard;
}

/**
 * Requires a caller who may change the form data of the form in the path, and stores what it found in `locals.reached`.
 * An intake application passes: the statement that saves enforces its policy (decision 0019), so no query is needed here.
 */
export function mayUpdateData(access: FormAccess): Guard {
  return {
    name: 'mayUpdateData',
    check(request, response) {
      // The most frequent request: decided without a promise.
      if (callerOf(response).roles.has(intakeRole)) return;
      const { success, data } = formParams.safeParse(request.params);
      if (!success) throw invalidRequest([{ pointer: '/params/formId', detail: 'must be a UUID' }]);
      return access.reach('update-data', approachOf(response, data.formId)).then((reached) => {
        response.locals.reached = reached;
      });
    },
  };
}
