// Explains why each change of the code that no test noticed does no harm. A test compares this list with the results.
import { clients } from './explanations/clients.ts';
import type { Explanation } from './explanations/explanation.ts';
import { forms } from './explanations/forms.ts';
import { proxiedRequest } from './explanations/proxied-request.ts';
import { service } from './explanations/service.ts';
import { sessions } from './explanations/sessions.ts';
import { signIn } from './explanations/sign-in.ts';
import { targets } from './explanations/targets.ts';

export const explanations: readonly Explanation[] = [
  ...forms,
  ...service,
  ...targets,
  ...proxiedRequest,
  ...sessions,
  ...signIn,
  ...clients,
];
