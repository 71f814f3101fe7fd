// Guards that need the form: they decide before the body is read and parsed, which costs more than the decision.
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import type { FormAccess } from './access.ts';
import { intakeRole } from './policy.ts';
import { approachOf } from './request.ts';
import { formParams } from './schema.ts';

/**
 * A caller who may change the form data of the form in the path; leaves what it found in `locals.reached`. An intake
 * application passes: the statement that saves holds its policy (decision 0019), and needs no query before.
 */
export function mayUpdateData(access: FormAccess): Guard {
  return {
    name: 'mayUpdateData',
    check(request, response) {
      // At once: this is the commonest request.
      if (callerOf(response).roles.has(intakeRole)) return;
      const { success, data } = formParams.safeParse(request.params);
      if (!success) throw invalidRequest([{ pointer: '/params/formId', detail: 'must be a UUID' }]);
      return access.reach('update-data', approachOf(response, data.formId)).then((reached) => {
        response.locals.reached = reached;
      });
    },
  };
}
