// Log lines about token refreshes that failed. They name the session by its handle, and no person and no token.
import type { Logger } from '../../service/operations/log.ts';
import type { RefreshOutcome, Session } from './session.ts';

/** Fixed name of the audit event: the identity provider's response contained tokens of somebody else. */
const foreignTokens = 'session.foreign-tokens';

export function logFailure(
  log: Logger,
  session: Session,
  outcome: Exclude<RefreshOutcome, { kind: 'refreshed' }>,
): void {
  const { kind } = outcome;
  const { handle, tenantId, clientId, oidcClientId } = session;
  const about = { session: handle, tenant: tenantId, client: clientId, outcome: kind };
  if (kind === 'foreign')
    log.error(
      { ...about, event: foreignTokens, check: outcome.check },
      'session ended: the refreshed tokens do not belong to its person',
    );
  else if (kind === 'client-refused')
    log.error(
      { ...about, oidcClientId },
      'the identity provider rejected the credentials of a client: correct them there, or register the client again',
    );
  else log.warn(about, 'token refresh failed');
}
