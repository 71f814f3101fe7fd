// The dashboard of the token handler: sign-ins, sessions, token refreshes, and requests to targets.
import { database } from './form-service.ts';
import type { RowText } from './panels.ts';
import { nodeProcesses } from './pods.ts';
import type { Queries } from './queries.ts';

export function tokenHandler(queries: Queries): RowText[] {
  return [
    signIns(queries),
    sessions(queries),
    targets(queries),
    upstreams(queries),
    clients(queries),
    machinery(queries),
  ];
}

function signIns(queries: Queries): RowText {
  return {
    title: 'Sign-in',
    panels: [
      {
        title: 'Sign-ins by outcome',
        question: 'Can people sign in?',
        queries: [queries.perMinute('formgate_sign_ins_total', { by: ['outcome'] })],
        runbooks: ['sign-in-availability'],
      },
      {
        title: 'Failed sign-ins by reason',
        question: 'Why do sign-ins fail?',
        queries: [
          queries.perMinute('formgate_sign_ins_total', { by: ['reason'], where: 'outcome="failed"', quiet: true }),
        ],
        runbooks: ['sign-in-availability', 'sign-in-failing-for-client'],
      },
      {
        title: 'Clients through which nobody can sign in',
        question: 'Is one client broken, while others work? The log names it.',
        queries: [queries.max('formgate_sign_in_failing_clients', { legend: 'clients' })],
        show: 'number',
        width: 8,
        limits: { red: 1 },
        runbooks: ['sign-in-failing-for-client'],
      },
      {
        title: 'Response time of sign-in',
        question: 'How long does the token handler take for each step of a sign-in? The value is that of 99 % of them.',
        queries: [
          queries.quantile(0.99, 'formgate_http_request_duration_seconds', {
            by: ['route'],
            where: 'route=~".*/clients/:clientId/(auth|callback)"',
          }),
        ],
        runbooks: ['sign-in-latency'],
      },
      {
        title: 'Calls to the identity provider',
        question: 'Is the identity provider slow? The value is that of 99 % of the calls.',
        queries: [queries.quantile(0.99, 'formgate_dependency_call_duration_seconds', { by: ['dependency'] })],
        runbooks: ['identity-provider-down'],
      },
      {
        title: 'Logouts',
        question: 'Who ends sessions: people, the identity provider, or administrators?',
        queries: [queries.perMinute('formgate_logouts_total', { by: ['kind'] })],
      },
    ],
  };
}

function sessions(queries: Queries): RowText {
  return {
    title: 'Sessions and tokens',
    panels: [
      {
        title: 'Open sessions',
        question: 'How many people are signed in? A sudden fall means that sessions were lost.',
        queries: [queries.max('formgate_sessions', { legend: 'sessions' })],
      },
      {
        title: 'Sessions ended by a cap',
        question: 'Does a person or a tenant open more sessions than it may have?',
        queries: [queries.perMinute('formgate_replaced_sessions_total', { by: ['cap'] })],
      },
      {
        title: 'Token refreshes by outcome',
        question: 'Are access tokens renewed? If a refresh fails for good, the session ends.',
        queries: [queries.perMinute('formgate_token_refreshes_total', { by: ['outcome'], quiet: true })],
        runbooks: ['refreshes-failing'],
      },
      {
        title: 'Refreshes in progress',
        question: 'Do refreshes wait, because the identity provider is slow?',
        queries: [queries.sum('formgate_token_refreshes_in_progress', { by: ['state'] })],
        show: 'areas',
      },
      {
        title: 'Refreshes that did not start',
        question: 'Were refreshes refused, because too many were waiting?',
        queries: [queries.perMinute('formgate_token_refresh_refusals_total', { by: ['reason'], quiet: true })],
        runbooks: ['refreshes-failing'],
      },
      {
        title: 'Duration of Redis commands',
        question: 'Is Redis slow? Every request with a session may wait for it.',
        queries: [0.5, 0.99].map((quantile) => queries.quantile(quantile, 'formgate_redis_command_duration_seconds')),
        runbooks: ['store-down'],
      },
      {
        title: 'Age of the current key',
        question: 'When was the key ring rotated for the last time?',
        queries: [queries.max('formgate_key_ring_current_key_age_seconds', { legend: 'age' })],
        show: 'number',
        runbooks: ['key-ring-old'],
      },
      {
        title: 'Secrets under old keys',
        question: 'May an old key be removed from the key ring? Not before this is 0.',
        queries: [queries.max('formgate_key_ring_old_secrets', { legend: 'secrets' })],
        show: 'number',
        runbooks: ['key-ring-old'],
      },
    ],
  };
}

function targets(queries: Queries): RowText {
  const all = 'formgate_proxied_requests_total';
  return {
    title: 'Proxied requests',
    panels: [
      {
        title: 'Proxied requests by outcome',
        question: 'Do requests to targets succeed, and if not, who fails: the client, the target, or the way to it?',
        queries: [queries.perSecond(all, { by: ['outcome'] })],
        runbooks: ['targets-availability'],
      },
      {
        title: 'Failed proxied requests by target',
        question: 'Which target fails? The names are known if METRICS_TARGETS is on.',
        queries: [
          queries.perSecond(all, {
            by: ['target', 'outcome'],
            where: 'outcome=~"server-error|unreachable|timeout"',
            quiet: true,
          }),
        ],
        runbooks: ['targets-availability'],
      },
      {
        title: 'Time until a target responds',
        question: 'How long do targets take to begin a response?',
        queries: [0.5, 0.95, 0.99].map((quantile) => queries.quantile(quantile, 'formgate_upstream_duration_seconds')),
        runbooks: ['targets-latency'],
      },
      {
        title: 'Rejected requests',
        question: 'Why does the token handler reject requests before they reach a target: path, host, CSRF, session?',
        queries: [queries.perSecond('formgate_rejected_requests_total', { by: ['reason'], quiet: true })],
      },
      {
        title: 'Incomplete proxied requests',
        question: 'Which side ended requests before they were complete?',
        queries: [queries.perSecond('formgate_proxied_requests_aborted_total', { by: ['side'], quiet: true })],
      },
      {
        title: 'Bodies that were too slow',
        question: 'Do clients upload or download more slowly than BODY_MIN_RATE?',
        queries: [queries.perMinute('formgate_slow_bodies_total', { by: ['direction'], quiet: true })],
      },
    ],
  };
}

function upstreams(queries: Queries): RowText {
  return {
    title: 'Connections to targets',
    panels: [
      {
        title: 'Connections',
        question: 'How many connections do requests hold, and how many wait for one?',
        queries: [queries.sum('formgate_upstream_connections', { by: ['state'] })],
      },
      {
        title: 'Requests refused for lack of connections to targets',
        question: 'Did requests get 503, because a person, a tenant or the pod used all of its connections?',
        queries: [queries.perSecond('formgate_upstream_refusals_total', { by: ['reason'], quiet: true })],
        runbooks: ['targets-availability'],
      },
      {
        title: 'Open streams',
        question: 'How many WebSockets and event streams are open? A pod that stops ends them last.',
        queries: [queries.sum('formgate_open_streams', { by: ['kind'] })],
        show: 'areas',
      },
    ],
  };
}

function clients(queries: Queries): RowText {
  return {
    title: 'Clients and their registrations',
    panels: [
      {
        title: 'Registrations at the identity provider',
        question: 'Can the token handler register clients?',
        queries: [queries.perMinute('formgate_client_registrations_total', { by: ['outcome'] })],
      },
      {
        title: 'Invalid clients',
        question: 'Does the configuration of a tenant contain clients that cannot be used? The log names them.',
        queries: [queries.perMinute('formgate_invalid_clients_total', { by: ['place', 'field'], quiet: true })],
      },
      {
        title: 'Invalid redirect URIs',
        question: 'Do clients have redirect URIs that are not allowed?',
        queries: [queries.perMinute('formgate_invalid_redirect_uris_total', { by: ['place'], quiet: true })],
      },
      {
        title: 'Registrations left behind',
        question: 'Are there registrations that must still be deleted at the identity provider?',
        queries: [queries.max('formgate_registration_leftovers', { by: ['kind'] })],
      },
    ],
  };
}

function machinery(queries: Queries): RowText {
  const { title, panels } = database(queries);
  return { title: `${title}, and pods`, panels: [...panels, ...nodeProcesses(queries)] };
}
