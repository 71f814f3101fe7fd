// What a failure of the configuration service is to a client of the register API: its rejection is 400, all else 502.
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';

/** What the service understood and refused. Any other 4xx is a fault between the two services, not the client's. */
const rejections = new Set([400, 409, 413, 422]);

/** Runs calls to the configuration service. Throws Problem `invalid-request` where it rejects, else `dependency-failed`. */
export async function asked<T>(calls: () => Promise<T>): Promise<T> {
  try {
    return await calls();
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    if (error.kind === 'rejected' && error.upstreamStatus !== undefined && rejections.has(error.upstreamStatus)) {
      const reason = error.rejection === undefined ? '.' : `: ${error.rejection}`;
      throw new Problem('invalid-request', `The configuration service rejected the request${reason}`, { cause: error });
    }
    // An open circuit, a time-out and a refused token included: to the client they are all the same failure.
    const { headers } = error;
    const detail = 'The configuration service failed or denied access.';
    throw new Problem('dependency-failed', detail, { cause: error, headers });
  }
}
