// The catalogue of the actions in audit events. docs/audit.md lists them.

export const auditActions = {
  'form.create': { object: 'form', meaning: 'Create a form' },
  'form.read-data': { object: 'form', meaning: 'Read the form data' },
  'form.search': { object: 'form', meaning: 'Search forms by the address of the applicant, without reading form data' },
  'form.save': { object: 'form', meaning: 'Save the form data' },
  'form.send-code': { object: 'form', meaning: 'Send a code to the applicant' },
  'form.keep': { object: 'form', meaning: 'Keep a draft for longer' },
  'form.submit': { object: 'form', meaning: 'Submit a form, also one that the request creates' },
  'form.unlock': { object: 'form', meaning: 'Unlock a locked form' },
  'form.archive': { object: 'form', meaning: 'Archive a form' },
  'form.to-draft': { object: 'form', meaning: 'Make a submitted form a draft again' },
  'form.hold': { object: 'form', meaning: 'Put a form on hold, so that it is not deleted' },
  'form.release': { object: 'form', meaning: 'Release a form that was on hold' },
  'form.delete': { object: 'form', meaning: 'Delete a form' },
  'form.delete-unnotified': {
    object: 'form',
    meaning: 'Delete a locked form, although the event service has not accepted its event `form-locked`',
  },
  'form.upload-file': { object: 'form', meaning: 'Upload a file of a form' },
  'quarantine.release': { object: 'quarantine-item', meaning: 'Release a quarantined item' },
  'register.create': { object: 'register', meaning: 'Create a register' },
  'register.change': { object: 'register', meaning: 'Change the description or the entries of a register' },
  'register.import': { object: 'register', meaning: 'Import entries of a register' },
  'register.keep-revision': { object: 'register', meaning: 'Keep the latest revision of a register' },
  'register.activate-revision': { object: 'register', meaning: 'Choose the revision of a register that forms use' },
  'register.delete': { object: 'register', meaning: 'Delete a register' },
  'client.register': { object: 'client', meaning: 'Register a client at the identity provider' },
  'client.update': { object: 'client', meaning: 'Replace the redirect URIs of a registered client' },
  'client.write': { object: 'client', meaning: 'Write a core client to the configuration service' },
  'client.remove': { object: 'client', meaning: 'Remove a core client from the configuration service' },
  'session.sign-in': { object: 'session', meaning: 'Open a session after a sign-in' },
  'session.sign-out': { object: 'session', meaning: 'End the own session' },
  'session.list': { object: 'session', meaning: 'List the sessions of a tenant, with names and addresses of people' },
  'session.revoke': {
    object: 'session',
    meaning: 'End a session: another one of the same person or, for an administrator, of the tenant',
  },
  'session.end-by-provider': {
    object: 'client',
    meaning: 'End the sessions that a back-channel logout of the identity provider names',
  },
  'session.provider-logout': {
    object: 'session',
    meaning: 'End a session, because a back-channel logout names it: one event for each ended session',
  },
  'session.refresh-refused': {
    object: 'session',
    meaning: 'End a session, because the identity provider refused its refresh token',
  },
  'session.foreign-tokens': {
    object: 'session',
    meaning: 'End a session, because refreshed tokens belong to another person, client or issuer',
  },
  'session.abandoned': {
    object: 'session',
    meaning: 'End a session, because the pod that refreshed its tokens has died',
  },
  'session.replaced': {
    object: 'session',
    meaning:
      'End a session because of a sign-in: the former one of the same browser, or the oldest of a person who has opened more than 100, or of a tenant beyond TENANT_SESSION_LIMIT',
  },
  'configuration.change': { object: 'configuration', meaning: 'Change the latest revision of a configuration' },
  'configuration.create-revision': { object: 'configuration', meaning: 'Create a revision of a configuration' },
  'configuration.activate-revision': { object: 'configuration', meaning: 'Choose the active revision' },
  'configuration.delete': { object: 'configuration', meaning: 'Delete a configuration with all revisions' },
  'event.send': { object: 'event', meaning: 'Send an event' },
  'subscription.create': { object: 'subscription', meaning: 'Subscribe to a notification type' },
  'subscription.change': { object: 'subscription', meaning: 'Change the criteria of a subscription' },
  'subscription.delete': { object: 'subscription', meaning: 'End a subscription' },
  'subscriber.send-code': { object: 'subscriber', meaning: 'Send a code to a subscriber' },
  'subscriber.check-code': { object: 'subscriber', meaning: 'Check a code of a subscriber' },
  'subscriber.delete': { object: 'subscriber', meaning: 'Delete a subscriber' },
} as const satisfies Record<string, { object: string; meaning: string }>;

export type AuditAction = keyof typeof auditActions;
export type AuditObjectType = (typeof auditActions)[AuditAction]['object'];

/** The path parameters that identify an object. They are never personal data. */
export const objectParams: Record<AuditObjectType, readonly string[]> = {
  form: ['formId'],
  'quarantine-item': ['itemId'],
  register: ['name'],
  client: ['clientId'],
  session: ['sessionId'],
  configuration: ['namespace', 'name'],
  event: [],
  subscription: ['subscriberId'],
  subscriber: ['subscriberId'],
};
