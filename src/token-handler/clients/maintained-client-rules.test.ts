// Tests when Formgate writes a core client that it maintains. The configuration document is in memory.
import { describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { maintainedClients } from '../../service/clients/client-rules.ts';
import { createUrns } from '../../service/urn.ts';
import { writeMaintainedClient } from './maintained-client.ts';

const [wanted] = maintainedClients({ BUILDER_APP_URL: 'https://builder.example.org' }, createUrns('urn:example'));
if (!wanted) throw new Error('there is no client for the builder');

/**
 * Calls `writeMaintainedClient` with `document` as the core configuration document. Returns the calls to the
 * configuration service and the log lines.
 */
async function write(document: unknown) {
  const { log, lines } = captureLog();
  const calls: unknown[] = [];
  const latest = document === undefined ? undefined : { revision: 1, configuration: document };
  const configuration = {
    async read(...call: unknown[]) {
      calls.push(['read', ...call]);
      return { latest };
    },
    async update(...call: unknown[]) {
      calls.push(['update', ...call]);
      return { revision: 2, configuration: {} };
    },
  };
  await writeMaintainedClient(wanted as NonNullable<typeof wanted>, { configuration, log });
  return { calls, lines: lines() };
}

describe('a maintained client', () => {
  const read = ['read', 'platform', 'token-handler', { core: true }];

  it('is not written if the core document has it', async () => {
    const { calls, lines } = await write({ clients: { 'builder-preview': structuredClone(wanted), other: {} } });
    expect([calls, lines]).toEqual([[read], []]);
  });

  it.each([
    ['no document exists', undefined],
    ['the document is no object', 'x'],
    ['the document has no clients', {}],
    ['the clients are no object', { clients: ['builder-preview'] }],
    ['it is only at the top level', { 'builder-preview': wanted }],
  ])('is written if %s, without changing another client, and the audit log says so', async (_, document) => {
    const { calls, lines } = await write(document);
    const update = { clients: { 'builder-preview': wanted } };
    expect(calls).toEqual([read, ['update', 'platform', 'token-handler', update, { core: true, idempotent: true }]]);
    expect(lines).toMatchObject([
      {
        level: 'info',
        client: 'builder-preview',
        before: null,
        after: wanted,
        audit: {
          action: 'client.write',
          actor: { kind: 'service', id: 'token-handler' },
          object: { id: 'builder-preview' },
          outcome: 'succeeded',
        },
      },
    ]);
  });

  it('is written if it differs, and the audit log has both versions', async () => {
    const changed = { ...wanted, targets: [] };
    const { calls, lines } = await write({ clients: { 'builder-preview': changed } });
    expect(calls).toHaveLength(2);
    expect(lines).toMatchObject([{ before: changed, after: wanted }]);
  });
});
