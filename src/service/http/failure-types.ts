// The problem types of failures for which the client is not responsible (5xx). They are
// part of the catalogue in problem-types.ts.

export const failureTypes = {
  internal: {
    status: 500,
    title: 'The service failed',
    meaning: 'An unexpected error occurred. The cause is only in the service’s log.',
    action: 'Retry once. If it persists, report the `X-Request-Id` of the response to the operator.',
  },
  'no-file-service': {
    status: 501,
    title: 'Files cannot be uploaded',
    meaning: 'The platform has no file service in its directory, so the applicant’s pages cannot take files.',
    action: 'Leave the question unanswered, and ask the organisation that receives the form how to send the file.',
  },
  'dependency-failed': {
    status: 502,
    title: 'A service that this one depends on failed',
    meaning: 'A platform service, the identity provider or an upstream could not be reached, or returned an error.',
    action: 'Retry with backoff. If the request is not idempotent, send an `Idempotency-Key` or check the outcome.',
  },
  'upstream-unresolved': {
    status: 502,
    title: 'The directory has no entry for the upstream',
    meaning: 'The target’s upstream is not in the platform’s directory.',
    action: 'An administrator must register the upstream in the directory or correct the target.',
  },
  busy: {
    status: 503,
    title: 'The service is busy',
    meaning:
      'A limit that requests share is reached: a queue is full, the request waited too long in it, or a budget or all connections are in use. Nothing was changed, except what `written` lists, if it is present.',
    action: 'Wait as many seconds as `Retry-After` says, then retry with backoff.',
  },
  unavailable: {
    status: 503,
    title: 'The service is unavailable for the moment',
    meaning: 'The database or another dependency is down, the service is stopping, or another request must end first.',
    action: 'Wait as many seconds as `Retry-After` says, if it is present, then retry with backoff.',
  },
  'dependency-timeout': {
    status: 504,
    title: 'A service that this one depends on did not respond in time',
    meaning: 'A platform service, the identity provider or an upstream was late. It may have processed the request.',
    action: 'Check the outcome, then retry with backoff.',
  },
} as const;
