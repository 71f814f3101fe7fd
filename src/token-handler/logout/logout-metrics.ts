// Defines the metric that counts the sessions that logouts have ended.
import prom from 'prom-client';

/**
 * Who ended the sessions:
 * - `person`: the person, by the logout link or in the list of their own sessions
 * - `back-channel`: the identity provider
 * - `administrator`: an administrator of the tenant
 */
export type LogoutKind = 'person' | 'back-channel' | 'administrator';

export type Logouts = ReturnType<typeof createLogoutMetrics>;

export function createLogoutMetrics({ registry }: { registry: prom.Registry }) {
  const logouts = new prom.Counter<'kind'>({
    name: 'formgate_logouts_total',
    help: 'Sessions ended by a logout, by kind (person, back-channel, administrator)',
    labelNames: ['kind'],
    registers: [registry],
  });
  return {
    count(kind: LogoutKind, sessions = 1): void {
      logouts.inc({ kind }, sessions);
    },
  };
}
