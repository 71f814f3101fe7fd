// Tests that audit events are logged at every level.
import pino from 'pino';
import { expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { auditEvent, auditLog, serviceEvent } from './audit.ts';

const audit = serviceEvent({ action: 'client.remove', by: 'reconciler', id: 'web' });

it.each(['trace', 'info', 'warn', 'fatal'])('an audit event is logged at LOG_LEVEL=%s', (level) => {
  const { log, lines } = captureLog(level);
  auditLog(log).info({ audit }, 'core client removed');
  log.info('another line');
  expect(lines()[0]).toMatchObject({ level: 'info', name: 'test', audit, msg: 'core client removed' });
  expect(lines()).toHaveLength(['trace', 'info'].includes(level) ? 2 : 1);
});

it('a silent log stays silent', () => {
  const written: string[] = [];
  auditLog(pino({ level: 'silent' }, { write: (line) => void written.push(line) })).info({ audit }, 'x');
  expect(written).toEqual([]);
});

it('an event of a process names it as the actor, and the identity provider as itself', () => {
  expect(auditEvent.parse(audit)).toEqual({
    action: 'client.remove',
    actor: { kind: 'service', id: 'reconciler' },
    object: { type: 'client', id: 'web' },
    outcome: 'succeeded',
  });
  const refused = { action: 'session.refresh-refused', by: 'identity-provider', tenant: 'urn:x', id: 'h' } as const;
  expect(serviceEvent(refused)).toMatchObject({ actor: { kind: 'identity-provider' }, tenant: 'urn:x' });
});
