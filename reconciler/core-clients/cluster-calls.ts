// Calls the Kubernetes API server with a time limit and over shared connections. Retries a call if a retry may succeed.
// Every failure is a ClusterError.
import { delimiter } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConfigurationOptions, KubeConfig, ObservableMiddleware } from '@kubernetes/client-node';
import { codeOfError } from '../../src/service/error-code.ts';
import { retryDelay } from '../../src/service/retry.ts';

/**
 * Kinds of failures. `timeout`: no complete response within the time limit. `refused`: a 4xx status that `byStatus`
 * does not list. `failed`: 408, 5xx or an invalid response.
 */
export type ClusterErrorKind = keyof typeof explanations;

const explanations = {
  absent: 'the API server does not know it',
  forbidden: 'the Role of this account does not allow it',
  unauthorized: 'the API server does not accept the token of this account',
  conflict: 'the object was changed or replaced by others',
  expired: 'the list kept expiring while it was read',
  busy: 'the API server is busy',
  timeout: 'the API server did not respond in time',
  unreachable: 'the API server cannot be reached',
  refused: 'the API server refused the request',
  failed: 'the API server failed',
};

const byStatus: Record<number, ClusterErrorKind> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'absent',
  408: 'failed',
  409: 'conflict',
  410: 'expired',
  429: 'busy',
};

/** A failed call. Its message may be logged: it names the call and the failure, but no token, address or object. */
export class ClusterError extends Error {
  readonly kind: ClusterErrorKind;
  /** Seconds to wait before a retry, from the header Retry-After. */
  readonly retryAfter: number | undefined;

  /** `what` names the call in a few words, such as `list coreclients.formgate.dev`. */
  constructor(
    kind: ClusterErrorKind,
    what: string,
    options: { status?: number; retryAfter?: number; why?: string } = {},
  ) {
    const status = options.status === undefined ? '' : ` (${options.status})`;
    super(`cannot ${what}: ${options.why ?? explanations[kind]}${status}`);
    this.name = 'ClusterError';
    this.kind = kind;
    this.retryAfter = options.retryAfter;
  }
}

function statusError(status: number, what: string, retryAfter: string | undefined): ClusterError {
  const kind = byStatus[status] ?? (status >= 400 && status < 500 ? 'refused' : 'failed');
  const seconds = Number(retryAfter);
  return new ClusterError(kind, what, { status, ...(Number.isFinite(seconds) && { retryAfter: seconds }) });
}

export interface ClusterCalls {
  /** Performs an idempotent request, which may be retried. `what` names the request in errors. Throws ClusterError. */
  call<T>(what: string, request: (options: CallOptions) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type CallOptions = ConfigurationOptions<ObservableMiddleware>;
type RequestContext = Parameters<ObservableMiddleware['pre']>[0];
type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;

export interface ClusterCallsOptions {
  /** The Kubernetes client module. The caller loads it only when it is needed, because it is large (decision 0037). */
  kubernetes: typeof import('@kubernetes/client-node');
  /** Time limit in milliseconds for one attempt of a request. */
  timeout: number;
  /** Maximum wait in milliseconds before a retry, even if Retry-After demands more. */
  longestWait?: number;
}

const retries = 3;
/**
 * The failures that are retried. A timeout is not retried, because each retry could take the whole time limit again.
 */
const retried: ReadonlySet<ClusterErrorKind> = new Set(['busy', 'failed', 'unreachable']);

export function createClusterCalls(options: ClusterCallsOptions): ClusterCalls {
  const { longestWait = 5_000 } = options;
  const connections = createConnections(options);

  return {
    async call(what, request) {
      for (let tried = 1; ; tried += 1) {
        try {
          return await request({ middleware: [connections.middleware], middlewareMergeStrategy: 'append' });
        } catch (cause) {
          const error = toClusterError(what, cause, options);
          if (tried > retries || !retried.has(error.kind)) throw error;
          const { retryAfter } = error;
          const backoff = retryDelay(tried, { first: 250, cap: longestWait });
          await sleep(retryAfter === undefined ? backoff : Math.min(retryAfter * 1_000, longestWait));
        }
      }
    },
    close: connections.close,
  };
}

/**
 * Creates middleware that sends all requests through the dispatcher of the first request, so that they share its
 * connections. The library creates a new dispatcher for each request, but an unused dispatcher opens no connection.
 */
function createConnections({ kubernetes, timeout }: ClusterCallsOptions) {
  let shared: Dispatcher | undefined;
  const middleware: ObservableMiddleware = {
    pre(context) {
      shared ??= context.getDispatcher();
      if (shared) context.setDispatcher(shared);
      context.setSignal(AbortSignal.timeout(timeout));
      return new kubernetes.Observable(Promise.resolve(context));
    },
    post: (context) => new kubernetes.Observable(Promise.resolve(context)),
  };
  return { middleware, close: async () => shared?.destroy() };
}

function toClusterError(what: string, error: unknown, { kubernetes }: ClusterCallsOptions): ClusterError {
  if (error instanceof ClusterError) return error;
  if (error instanceof kubernetes.ApiException) return statusError(error.code, what, error.headers['retry-after']);
  if (error instanceof Error && error.name === 'TimeoutError') return new ClusterError('timeout', what);
  // fetch throws a TypeError whose cause contains the error code.
  const code = codeOfError(error instanceof TypeError ? error.cause : error);
  if (code !== undefined)
    return new ClusterError('unreachable', what, { why: `the API server cannot be reached, ${code}` });
  return new ClusterError('failed', what, { why: 'no valid response' });
}

/**
 * Loads the kubeconfig files that `kubeconfig` lists or, if it is undefined, the Pod's service account. Throws
 * ClusterError, whose message never quotes the files.
 */
export function loadKubeConfig(
  { KubeConfig: Loader }: Pick<typeof import('@kubernetes/client-node'), 'KubeConfig'>,
  kubeconfig: string | undefined,
): KubeConfig {
  const config = new Loader();
  try {
    const [first, ...others] = (kubeconfig ?? '').split(delimiter).filter((path) => path !== '');
    if (first === undefined) config.loadFromCluster();
    else config.loadFromFile(first);
    // As with kubectl, the first file that has a current context determines the context.
    for (const path of others)
      config.mergeConfig(loadKubeConfig({ KubeConfig: Loader }, path), Boolean(config.getCurrentContext()));
    if (!config.getCurrentCluster()) throw new Error('no current context');
    return config;
  } catch {
    throw new ClusterError('failed', 'read KUBECONFIG', {
      why: 'the file is missing or invalid, or has no current context',
    });
  }
}
