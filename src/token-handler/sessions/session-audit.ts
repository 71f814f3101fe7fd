// Adds a session and its person to the log line and the audit event of the request that opens or ends the session.

import type { HttpResponse } from '../../service/http/request-context.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import type { Session } from './session.ts';

export function noteSession(
  response: Pick<HttpResponse, 'locals'>,
  { handle, tenantId, clientId, user }: Pick<Session, 'handle' | 'tenantId' | 'clientId' | 'user'>,
): void {
  response.locals.signedIn = { tenantId, clientId, subject: user.id };
  noteAudit(response, { objectId: handle });
}
