// Calls the Kubernetes API server: with a time limit, with retries if a retry may succeed, and over shared connections.
// Every failure is a ClusterError.
import { delimiter } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConfigurationOptions, KubeConfig, ObservableMiddleware } from '@kubernetes/client-node';
import { retryDelay } from '../../src/service/retry.ts';
import { ClusterError, type ClusterErrorKind, statusError } from './cluster-error.ts';

export interface ClusterCalls {
  /** `what` in a few words, for the error. The request may be repeated, so it must be idempotent. Throws ClusterError. */
  call<T>(what: string, request: (options: CallOptions) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type CallOptions = ConfigurationOptions<ObservableMiddleware>;
type RequestContext = Parameters<ObservableMiddleware['pre']>[0];
type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;

export interface ClusterCallsOptions {
  /** The module, which is loaded only when it is needed because it is large (decision 0037). */
  kubernetes: typeof import('@kubernetes/client-node');
  /** Milliseconds for one attempt. */
  timeout: number;
  /** Longest wait in milliseconds before a retry, whatever Retry-After says. */
  longestWait?: number;
}

const repeats = 3;
/** Without timeouts: each retry would take the whole time limit again. */
const worthRepeating: ReadonlySet<ClusterErrorKind> = new Set(['busy', 'failed', 'unreachable']);

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
          if (tried > repeats || !worthRepeating.has(error.kind)) throw error;
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
 * Reuses the dispatcher of the first request for all. The library creates a dispatcher, and so a connection, for each
 * request; the unused ones never connect.
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
  // fetch throws a TypeError whose cause holds the error code.
  const code = codeOf(error instanceof TypeError ? error.cause : error);
  if (code !== undefined)
    return new ClusterError('unreachable', what, { why: `the API server cannot be reached, ${code}` });
  return new ClusterError('failed', what, { why: 'it could not be asked, or its answer is none' });
}

/** Only the code, because messages of network errors hold addresses. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Loads the files of KUBECONFIG, else a Pod's service account. Throws ClusterError, which quotes no file. */
export function loadKubeConfig(
  { KubeConfig: Loader }: Pick<typeof import('@kubernetes/client-node'), 'KubeConfig'>,
  kubeconfig: string | undefined,
): KubeConfig {
  const config = new Loader();
  try {
    const [first, ...others] = (kubeconfig ?? '').split(delimiter).filter((path) => path !== '');
    if (first === undefined) config.loadFromCluster();
    else config.loadFromFile(first);
    // As with kubectl, the first file with a current context decides.
    for (const path of others)
      config.mergeConfig(loadKubeConfig({ KubeConfig: Loader }, path), Boolean(config.getCurrentContext()));
    if (!config.getCurrentCluster()) throw new Error('no current context');
    return config;
  } catch {
    throw new ClusterError('failed', 'read KUBECONFIG', {
      why: 'it is missing, no kubeconfig, or has no current context',
    });
  }
}
