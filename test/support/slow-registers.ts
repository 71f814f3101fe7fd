// A scripted configuration service with the definitions of many registers, and with an endless list of form
// definitions. It delays each response with entries of a register, and each page of that list. It contains no other
// documents.
import { setTimeout as sleep } from 'node:timers/promises';
import { newDefinition } from '../../src/forms/registers/register.ts';
import { startTestAccess, testServiceSecret } from './access.ts';
import { connectConfiguration } from './configuration-connection.ts';
import { sendJson, startFaultServer } from './fault-server.ts';

export interface SlowRegistersOptions {
  names: string[];
  /** Milliseconds until the service responds to a read of entries. */
  pause: number;
  /** The response to a read of entries. */
  entries: object;
  /** Milliseconds after which a call of the client fails. */
  callTimeout?: number;
}

export type SlowRegisters = Awaited<ReturnType<typeof startSlowRegisters>>;

export async function startSlowRegisters({ names, pause, entries, callTimeout }: SlowRegistersOptions) {
  const access = await startTestAccess();
  let reads = 0;
  const service = await startFaultServer(async (response, { target }) => {
    if (target.includes('/platform/configuration-service')) {
      const configuration = Object.fromEntries(names.map((name) => [`data-register:${name}`, newDefinition('')]));
      return sendJson(response, { latest: { revision: 0, configuration } });
    }
    const isList = new URL(target, service.url).pathname.endsWith('/configuration/form-service');
    if (!isList && !target.includes('/data-register/')) return sendJson(response, {});
    reads += 1;
    await sleep(pause);
    if (!isList) return sendJson(response, entries);
    const latest = { revision: 0, configuration: { name: 'Permit' } };
    const results = [{ namespace: 'form-service', name: `permit-${reads}`, latest }];
    return sendJson(response, { results, page: { next: `cursor ${reads}` } });
  });
  const clientId = access.urns.service('form-service');
  const account = { accessUrl: access.url, clientId, clientSecret: testServiceSecret(clientId) };
  const connection = connectConfiguration(account, { url: service.url, timeoutMs: callTimeout });
  return {
    urns: access.urns,
    configuration: connection.configuration,
    /** Returns how many reads of entries and of pages have begun. */
    reads: () => reads,
    async close() {
      await connection.close();
      await service.close();
      await access.close();
    },
  };
}
