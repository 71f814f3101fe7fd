// Explains for each survivor (a change of the code that no test noticed) why it does no harm. mutation.test.ts compares
// this list with the results.
import { auth } from './explanations/auth.ts';
import { clientRoutes } from './explanations/client-routes.ts';
import { clients } from './explanations/clients.ts';
import type { Explanation } from './explanations/explanation.ts';
import { forms } from './explanations/forms.ts';
import { logout } from './explanations/logout.ts';
import { proxiedBodies } from './explanations/proxied-bodies.ts';
import { proxiedRequest } from './explanations/proxied-request.ts';
import { service } from './explanations/service.ts';
import { sessionCookies } from './explanations/session-cookies.ts';
import { sessions } from './explanations/sessions.ts';
import { signIn } from './explanations/sign-in.ts';
import { targetRules } from './explanations/target-rules.ts';
import { targets } from './explanations/targets.ts';

export const explanations: readonly Explanation[] = [
  ...forms,
  ...service,
  ...auth,
  ...targets,
  ...targetRules,
  ...proxiedBodies,
  ...proxiedRequest,
  ...sessions,
  ...sessionCookies,
  ...logout,
  ...signIn,
  ...clients,
  ...clientRoutes,
];
