// Lists the values of labels. Tests use the lists to check that alerts, dashboards and runbooks select only existing
// values. The lists come from the code that exports the metrics, so they always contain the current values.
import { codeOutcomes } from '../../src/forms/codes/code-metrics.ts';
import { runParts } from '../../src/forms/expiry/metrics.ts';
import { noReads } from '../../src/platform/platform-metrics.ts';
import { mailOutcomes } from '../../src/platform-server/mail-metrics.ts';
import { certificateNames } from '../../src/service/operations/certificate-metrics.ts';
import { watchedDependencies } from '../../src/service/operations/dependency-state.ts';
import { statusClasses } from '../../src/service/operations/http-metrics.ts';
import { rejectionReasons } from '../../src/token-handler/rejection.ts';
import { refreshOutcomes } from '../../src/token-handler/sessions/refresh-metrics.ts';
import { signInOutcomes } from '../../src/token-handler/sign-in/sign-in-metrics.ts';
import { proxyOutcomes } from '../../src/token-handler/targets/proxy-outcome.ts';

/**
 * The possible values of each label, keyed by metric and label. The label `route` is missing: its values are the
 * patterns of the route tables.
 */
export const labelValues: Record<string, Record<string, readonly string[]>> = {
  formgate_http_requests_total: { status: statusClasses },
  formgate_dependency_up: { dependency: watchedDependencies },
  // The counter also counts dependencies that are not watched.
  formgate_dependency_failures_total: { dependency: watchedDependencies },
  formgate_cache_reads_total: { outcome: Object.keys(noReads) },
  formgate_certificate_expiry_timestamp_seconds: { certificate: certificateNames },
  formgate_codes_total: { outcome: codeOutcomes },
  formgate_mails_total: { outcome: mailOutcomes },
  formgate_reconciler_last_success_timestamp_seconds: { part: runParts },
  formgate_sign_ins_total: { outcome: signInOutcomes },
  formgate_token_refreshes_total: { outcome: refreshOutcomes },
  formgate_proxied_requests_total: { outcome: proxyOutcomes },
  formgate_rejected_requests_total: { reason: rejectionReasons },
};
