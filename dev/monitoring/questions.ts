// The question that each metric answers for an operator, keyed by the metric's name. docs/metrics.md shows the
// questions.

export const questions: Readonly<Record<string, string>> = {
  // Metrics that every process exports
  formgate_build_info: 'Which version runs where? Is a rollout complete?',
  formgate_http_requests_total: 'How many requests arrive, and which share of them fails, by route?',
  formgate_http_request_duration_seconds: 'How long do requests take? Is the objective for latency met?',
  formgate_rate_limited_requests_total: 'Which rate limit refuses requests, and how many?',
  formgate_trace_export_failures_total: 'Do the traces reach the collector?',
  formgate_dependency_failures_total: 'Which dependency fails, and in which way?',
  formgate_dependency_calls_total: 'Which share of the calls to a dependency fails?',
  formgate_dependency_call_duration_seconds: 'Is a dependency slow?',
  formgate_dependency_up: 'Can this pod reach the dependency now?',
  formgate_postgres_pool_connections: 'How many database connections are in use?',
  formgate_postgres_pool_waiting: 'Do requests wait for a database connection?',
  formgate_postgres_pool_wait_seconds: 'How long do requests wait for a database connection?',
  formgate_postgres_pool_refused_total: 'Were requests refused because the database could not keep up?',
  formgate_unready: 'Why does this pod get no requests?',
  formgate_startup_checks_total: 'Does the identity provider accept the settings of a pod that starts?',
  formgate_certificate_expiry_timestamp_seconds: 'Which certificate expires next, and when?',
  formgate_quarantined_items: 'Which items were set aside because they fail every time?',
  // Metrics of the processes that call the platform
  formgate_cache_reads_total: 'Do the caches of platform responses keep calls away from the platform?',
  formgate_platform_stale_serves_total: 'Is an outage of a platform service bridged with old responses?',
  formgate_platform_miss_reads_total: 'Do callers name definitions, tenants or clients that do not exist?',
  formgate_platform_circuit_open: 'Has this pod stopped calling a platform service that fails?',
  formgate_platform_registration_pending: 'Has a document that the service registers at startup been written?',
  formgate_platform_registration_repairs_total: 'Does another writer undo what the service registers?',
  formgate_platform_registration_unknown: 'Does a platform service work without the registration of this service?',
  // Metrics of the child processes that execute code of tenants
  formgate_worker_jobs_total: 'How many jobs with code of tenants run, and how many exceed their limits?',
  formgate_worker_wait_seconds: 'How long do these jobs wait for a child process?',
  formgate_worker_kills_total: 'How often does a job end its child process?',
  // Metrics of the form service
  formgate_forms: 'How many forms are there, by status?',
  formgate_form_transitions_total: 'How many forms are created, submitted and otherwise changed?',
  formgate_codes_total: 'Do codes arrive, and are they accepted?',
  formgate_suppressed_notices_total:
    'How many mails about created drafts were suppressed, for example because of abuse?',
  formgate_schema_suspensions_total: 'Is a data schema too expensive to validate?',
  formgate_address_index_complete: 'Does the search by address find every form yet?',
  formgate_outbox_undelivered: 'How many events and notices wait for their delivery?',
  formgate_outbox_oldest_undelivered_seconds: 'How late are deliveries?',
  formgate_outbox_repeatedly_failed: 'How many deliveries keep failing?',
  formgate_outbox_deliveries_total: 'How many deliveries are attempted, and what becomes of them?',
  formgate_outbox_delivery_duration_seconds: 'How long does a delivery take?',
  formgate_reconciler_last_success_timestamp_seconds:
    'When did the expiry, and the sync of core clients, last succeed?',
  formgate_reconciler_last_run_timestamp_seconds: 'When did the reconciler last run?',
  formgate_reconciler_last_run_duration_seconds: 'How long did the last run take?',
  formgate_reconciler_last_run_outcome: 'How did the last run end?',
  formgate_reconciler_last_run_count: 'What did the last run change?',
  formgate_reconciler_core_clients: 'Which CoreClient resources are not accepted, synced or ready?',
  formgate_oldest_overdue_draft_seconds: 'Are drafts locked in time?',
  formgate_overdue_deletions: 'Are locked forms deleted in time?',
  // Metrics of the token handler
  formgate_redis_command_duration_seconds: 'Is Redis slow?',
  formgate_sessions: 'How many sessions are open?',
  formgate_sign_ins_total: 'How many people sign in, and why do sign-ins fail?',
  formgate_sign_in_failing_clients: 'Are there clients through which nobody can sign in?',
  formgate_token_refreshes_total: 'Are access tokens refreshed, and if not, why?',
  formgate_token_refreshes_in_progress: 'Do requests wait for the identity provider to refresh tokens?',
  formgate_token_refresh_refusals_total: 'Were requests refused because too many token refreshes were waiting?',
  formgate_logouts_total: 'How many sessions end by a logout, and who ends them?',
  formgate_proxied_requests_total: 'What becomes of the requests to targets?',
  formgate_proxied_requests_aborted_total: 'Who ends proxied requests early?',
  formgate_upstream_duration_seconds: 'Are upstreams slow?',
  formgate_upstream_connections: 'How many connections to upstreams are in use, and do requests wait for one?',
  formgate_upstream_refusals_total: 'Were requests refused because connections to upstreams were in use?',
  formgate_slow_bodies_total: 'Do clients send or read bodies too slowly?',
  formgate_open_streams: 'How many WebSockets and event streams are open?',
  formgate_rejected_requests_total: 'Why were proxied requests rejected before they reached an upstream?',
  formgate_client_registrations_total: 'Are clients registered at the identity provider?',
  formgate_registration_leftovers: 'What is left to clean up after replaced client registrations?',
  formgate_invalid_clients_total: 'Is a client configured, in the core or in a tenant, that breaks a rule?',
  formgate_invalid_redirect_uris_total: 'Are redirect URIs configured that are not allowed?',
  formgate_key_ring_current_key_age_seconds: 'When was the key that encrypts secrets last rotated?',
  formgate_key_ring_old_secrets: 'May an old key be removed from the key ring?',
  // Metrics of the platform server
  formgate_mails_total: 'Does the mail server accept mail?',
  formgate_notices_total: 'What becomes of notices?',
  formgate_jobs_waiting: 'How many events and notices wait?',
  formgate_jobs_oldest_waiting_seconds: 'How late are events and notices?',
};

/**
 * Questions that the default metrics of prom-client answer, keyed by a prefix of the metric's name. The longest
 * matching prefix applies.
 */
export const defaultQuestions: Readonly<Record<string, string>> = {
  nodejs_active_: 'Do open handles or requests pile up?',
  nodejs_eventloop_lag: 'Is the event loop blocked, so that all requests of the pod wait?',
  nodejs_external_memory: 'How much memory is used outside of the heap?',
  nodejs_gc_duration: 'How much time does garbage collection take?',
  nodejs_heap: 'Does the heap grow?',
  nodejs_version_info: 'Which version of Node.js runs?',
  process_cpu: 'How much CPU time does the pod use?',
  process_max_fds: 'How many file descriptors may be open?',
  process_open_fds: 'Do file descriptors leak?',
  process_: 'How much memory does the pod use, and since when has it been running?',
};
