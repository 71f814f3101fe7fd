// Scripted incidents. Each causes one fault in the running product, and names the alert that must fire.
import { join } from 'node:path';
import {
  ageKey,
  expiringAuthority,
  fillRedis,
  fillStorage,
  lockForms,
  overwriteRegistration,
  poisonDraft,
  type Routine,
  restartWith,
  shut,
  startWithoutPlatform,
  starve,
  stopService,
  stutter,
  tenMinutesAhead,
} from './faults.ts';
import type { World } from './world.ts';

export interface Incident {
  fault: string;
  alert: string;
  severity: 'critical' | 'warning';
  /** Begins the fault, and returns a function that fixes it. */
  begin(world: World, routine: Routine): Promise<() => Promise<void>>;
}

export const incidents: Incident[] = [
  { fault: 'Redis stopped', alert: 'FormgateStoreDown', severity: 'critical', begin: shut('redis') },
  {
    ...{ fault: 'Postgres of the form service stopped', alert: 'FormgateStoreDown', severity: 'critical' },
    begin: shut('formsPostgres'),
  },
  { fault: 'Mail server down', alert: 'FormgateCodesNotDelivered', severity: 'critical', begin: shut('mail') },
  {
    ...{ fault: 'Identity provider stopped', alert: 'FormgateIdentityProviderDown', severity: 'critical' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'Reconciler suspended', alert: 'FormgateReconcilerLate', severity: 'warning' },
    begin: async (_world, routine) => {
      routine.reconciles = false;
      return async () => {
        routine.reconciles = true;
        await routine.reconcile();
      };
    },
  },
  {
    ...{ fault: 'Token handler stopped', alert: 'FormgateServiceDown', severity: 'critical' },
    begin: stopService('token-handler'),
  },
  { fault: 'Event service down', alert: 'FormgateOutboxStuck', severity: 'warning', begin: shut('platform') },
  {
    ...{ fault: 'All sign-ins of a client fail', alert: 'FormgateSignInFailingForClient', severity: 'warning' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'A row that Postgres refuses', alert: 'FormgateQuarantineGrowing', severity: 'warning' },
    begin: poisonDraft,
  },
  {
    ...{ fault: 'A draft that cannot be locked', alert: 'FormgateDraftsOverdue', severity: 'warning' },
    begin: poisonDraft,
  },
  {
    ...{ fault: 'Refreshes fail: identity provider down', alert: 'FormgateRefreshesFailing', severity: 'critical' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'Clock of a node ten minutes ahead', alert: 'FormgateSignInFailingForClient', severity: 'warning' },
    begin: restartWith('token-handler', () => tenMinutesAhead),
  },
  {
    ...{ fault: 'A certificate expires tomorrow', alert: 'FormgateCertificateExpiring', severity: 'critical' },
    begin: restartWith('token-handler', expiringAuthority),
  },
  {
    ...{ fault: 'A tenant stores very much', alert: 'FormgateTenantStorage', severity: 'warning' },
    begin: fillStorage,
  },
  { fault: 'The key is 1,000 days old', alert: 'FormgateKeyRingOld', severity: 'warning', begin: ageKey },
  {
    ...{ fault: 'Another writer removes a registration', alert: 'FormgateRegistrationRepaired', severity: 'warning' },
    begin: overwriteRegistration,
  },
  {
    ...{
      fault: 'Started without the configuration service',
      alert: 'FormgateRegistrationMissing',
      severity: 'warning',
    },
    begin: startWithoutPlatform,
  },
  {
    ...{ fault: 'Form service without CPU', alert: 'FormgateEventLoopBlocked', severity: 'warning' },
    begin: starve('forms'),
  },
  {
    ...{ fault: 'Identity provider failing', alert: 'FormgateSignInAvailability', severity: 'critical' },
    begin: shut('identityProvider'),
  },
  {
    ...{ fault: 'Memory of Redis full (disk full)', alert: 'FormgateSignInAvailability', severity: 'critical' },
    begin: fillRedis,
  },
  {
    ...{ fault: 'Postgres stopped', alert: 'FormgateFormApiAvailability', severity: 'critical' },
    begin: shut('formsPostgres'),
  },
  {
    ...{ fault: 'Upstream of a target hangs', alert: 'FormgateTargetsAvailability', severity: 'critical' },
    begin: async ({ gates }) => {
      gates.target.freeze();
      return () => gates.target.open();
    },
  },
  {
    ...{ fault: 'Postgres slow: a lock on the forms', alert: 'FormgateFormApiLatency', severity: 'critical' },
    begin: lockForms,
  },
  {
    ...{ fault: 'Identity provider slow', alert: 'FormgateSignInLatency', severity: 'critical' },
    begin: stutter(({ gates }) => gates.identityProvider, 4_000),
  },
  {
    ...{ fault: 'Upstream of a target slow', alert: 'FormgateTargetsLatency', severity: 'critical' },
    begin: stutter(({ gates }) => gates.target, 1_700),
  },
];

/** Names of the faults in a run with INCIDENTS=short. */
export const shortSelection = ['Redis stopped', 'Mail server down', 'Token handler stopped'];

export const reportFile = join(import.meta.dirname, '../../docs/incidents.md');
