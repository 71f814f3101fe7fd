// Writes log lines about failed token refreshes. The lines contain the session's handle, but no person and no token. If
// the failure ends the session immediately, the line is also an audit event.
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { RefreshOutcome, Session } from './session.ts';
import { mostTokenSetSize } from './token-size.ts';

export function logFailure(
  log: Logger,
  session: Session,
  outcome: Exclude<RefreshOutcome, { kind: 'refreshed' }>,
): void {
  const { kind } = outcome;
  const { handle, tenantId, clientId, oidcClientId } = session;
  const about = { session: handle, tenant: tenantId, client: clientId, outcome: kind };
  const event = { tenant: tenantId, id: handle };
  if (kind === 'foreign')
    auditLog(log).error(
      {
        ...about,
        check: outcome.check,
        audit: serviceEvent({ action: 'session.foreign-tokens', by: 'token-handler', ...event }),
      },
      'session ended: the refreshed tokens do not belong to its person',
    );
  else if (kind === 'client-refused')
    log.error(
      { ...about, oidcClientId },
      'the identity provider rejected the credentials of a client: correct them there, or register the client again',
    );
  else if (kind === 'refused')
    auditLog(log).warn(
      { ...about, audit: serviceEvent({ action: 'session.refresh-refused', by: 'identity-provider', ...event }) },
      'token refresh failed',
    );
  else if (kind === 'unknown' && outcome.isTooLarge)
    log.warn(
      { ...about, limit: mostTokenSetSize },
      'refreshed tokens too large: the session ends with its access token',
    );
  else log.warn(about, 'token refresh failed');
}
