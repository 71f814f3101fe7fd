// Guards that need the form: they decide before the body is read and parsed, which costs more than the decision.
import type { Guard } from '../../service/http-app.ts';
import { invalidRequest } from '../../service/problem.ts';
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
    async check(request, response) {
      const { success, data } = formParams.safeParse(request.params);
      if (!success) throw invalidRequest([{ pointer: '/params/formId', detail: 'must be a UUID' }]);
      const approach = approachOf(response, data.formId);
      if (approach.caller.roles.has(intakeRole)) return;
      response.locals.reached = await access.reach('update-data', approach);
    },
  };
}
